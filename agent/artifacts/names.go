package artifacts

import "context"

// Names tells which artifacts packages are. It MAY be called by many goroutines at once.
type Names interface {
	// Named gives the digest of the artifact that was published under the name and version of a package. What it gives once it gives for
	// ever. It gives errors marked [ErrNotFound] or [ErrUnavailable].
	Named(ctx context.Context, name, version string) (string, error)
}
