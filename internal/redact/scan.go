package redact

import (
	"math/bits"
	"strings"
)

// keyword is a literal to search for. Its id says to which shape or form it belongs.
type keyword struct {
	text string
	id   int
}

// scanner finds all keywords in one pass over a text. It keeps the keywords in buckets, by their first two bytes.
type scanner struct {
	buckets [][]keyword
	// filled has a bit for each non-empty bucket, and before the number of such buckets before each word of it.
	filled [1 << 16 / 64]uint64
	before [1 << 16 / 64]uint16
}

// newScanner returns a scanner for keywords of at least two bytes.
func newScanner(keywords []keyword) *scanner {
	s := &scanner{}
	for _, k := range keywords {
		bucket := bucketOf(k)
		s.filled[bucket/64] |= 1 << (bucket % 64)
	}
	count := uint16(0)
	for i, set := range &s.filled {
		s.before[i] = count
		count += uint16(bits.OnesCount64(set)) //nolint:gosec // at most 64
	}
	s.buckets = make([][]keyword, count)
	for _, k := range keywords {
		at := s.index(bucketOf(k))
		s.buckets[at] = append(s.buckets[at], k)
	}
	return s
}

func bucketOf(k keyword) uint16 { return uint16(k.text[0])<<8 | uint16(k.text[1]) }

// index returns the index of a bucket that is not empty.
func (s *scanner) index(bucket uint16) int {
	return int(s.before[bucket/64]) + bits.OnesCount64(s.filled[bucket/64]&(1<<(bucket%64)-1))
}

// scan finds all keywords in text, in order of position. It calls the function found with each keyword's position and
// id.
func (s *scanner) scan(text string, found func(at, id int)) {
	if len(text) < 2 {
		return
	}
	bucket := uint16(text[0])
	for at := range len(text) - 1 {
		bucket = bucket<<8 | uint16(text[at+1])
		if s.filled[bucket/64]&(1<<(bucket%64)) == 0 {
			continue
		}
		for _, k := range s.buckets[s.index(bucket)] {
			if strings.HasPrefix(text[at:], k.text) {
				found(at, k.id)
			}
		}
	}
}
