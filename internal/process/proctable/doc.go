// Package proctable reads the process table in /proc, and kills processes that it has found there. It works on Linux only.
//
// The package imports only packages that are initialized early, because package treeinit imports proctable. The comment of
// package treeinit says why.
package proctable
