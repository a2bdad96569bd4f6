// Package plan takes an author and a reviewer through the loop of package review, once for each phase of a plan.
package plan
