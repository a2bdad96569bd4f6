package redact

import "strings"

// keyword is a literal to search for. Its id says to which shape or form it belongs.
type keyword struct {
	text string
	id   int
}

// scanner finds all keywords in one pass over a text. It keeps the keywords in buckets, by their first two bytes.
type scanner struct {
	buckets map[uint16][]keyword
	// filled has a bit for each non-empty bucket.
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
		for _, k := range s.buckets[bucket] {
			if strings.HasPrefix(text[at:], k.text) {
				found(at, k.id)
			}
		}
	}
}
