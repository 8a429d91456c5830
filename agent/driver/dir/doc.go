// Package dir is the driver that unpacks an artifact into a directory and switches to it.
//
// It owns the place below its root:
//
//	<root>/<module>/releases/<digest>/   what was unpacked, whole, and never changed after
//	<root>/<module>/current              a symbolic link to one of them
//	<root>/<module>/.fetch               the archive on its way
//	<root>/<module>/.unpack              what is being unpacked
//
// It leaves getting the archive to agent/artifacts, and starting what is in it to whoever follows the link.
//
// Invariants:
//   - A release that has its name is whole: it was unpacked elsewhere, synced, and then renamed.
//   - The link names a whole release or does not exist. It changes in one step.
//   - Nothing is written outside of .unpack while unpacking, whatever the archive says. Of an archive that is refused nothing stays.
//   - Going back to a release that is kept needs no archive.
package dir
