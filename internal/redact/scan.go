package redact

import "strings"

// keyword is a literal that a scanner looks for, and what it is a part of.
type keyword struct {
	text string
	id   int
}

// scanner finds keywords in one pass. The first two bytes of each are its bucket.
type scanner struct {
	buckets map[uint16][]keyword
	// filled has a bit for each bucket that is not empty.
	filled [1 << 16 / 64]uint64
}

// newScanner returns a scanner for keywords of at least two bytes.
func newScanner(keywords []keyword) *scanner {
	s := &scanner{buckets: map[uint16][]keyword{}}
	for _, k := range keywords {
		bucket := uint16(k.text[0])<<8 | uint16(k.text[1])
		s.buckets[bucket] = append(s.buckets[bucket], k)
		s.filled[bucket/64] |= 1 << (bucket % 64)
	}
	return s
}

// scan calls found for every keyword in text, in the order of where they stand.
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
		for _, k := range s.buckets[bucket] {
			if strings.HasPrefix(text[at:], k.text) {
				found(at, k.id)
			}
		}
	}
}
