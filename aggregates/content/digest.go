package content

import (
	"crypto/sha256"
	"fmt"

	"catenary/es"
)

// Digest stands for the content it was made of. The zero value stands for nothing.
type Digest [16]byte

// Of gives the digest of event data or of a part of it: equal content gives equal digests, whatever order its labels came
// in. It panics on what has no stored form, which no event data is.
func Of(v any) Digest {
	body, err := es.Msgpack{}.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("content: %v", err))
	}
	sum := sha256.Sum256(body)
	return Digest(sum[:len(Digest{})])
}
