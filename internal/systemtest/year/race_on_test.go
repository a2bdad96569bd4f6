//go:build race

package year

const raceDetector = true
