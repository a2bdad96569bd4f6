// Package proctable reads the process table in /proc, and kills processes that it has found there. It works on Linux
// only.
//
// Package treeinit imports proctable and must be initialized early: see the comment of treeinit. So proctable must not
// import packages that are initialized late.
package proctable
