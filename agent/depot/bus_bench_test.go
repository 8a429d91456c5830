package depot

import (
	"io"
	"testing"

	"catenary/agent/artifacts"
)

// BenchmarkDepot takes 100 MB in and out, over loopback, without the server's syncs.
func BenchmarkDepot(b *testing.B) {
	const size = content(100_000_000)
	d := start(b, 1<<30)
	digest := size.digest()
	b.Run("publish", func(b *testing.B) {
		b.SetBytes(int64(size))
		for range b.N {
			done, err := d.Publish(bounded(b), size, digest, int64(size), "f", nil)
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := d.store.Remove(bounded(b), done.Stored); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	d.publish(b, size)
	b.Run("fetch", func(b *testing.B) {
		b.SetBytes(int64(size))
		for range b.N {
			r, err := d.Open(bounded(b), digest, 0)
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, r); n != int64(size) || err != nil {
				b.Fatal(n, err)
			}
			if err := r.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("fetch, compare and sync", func(b *testing.B) {
		b.SetBytes(int64(size))
		for range b.N {
			if err := artifacts.Fetch(bounded(b), d, digest, b.TempDir()+"/artifact"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
