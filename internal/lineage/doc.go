// Package lineage reads where versions come from (which modules each commit of a repository touches, and which commit each
// version was released at) and brings that into the chain as commits, builds and publications.
//
// It owns the format of the files, what each row means as a command, what came with a version, and the ids that make an import
// repeatable. It leaves the rules to the writer, sending to [commands.Client], and the talk with people to the command line.
//
// # What came with a version
//
// The manifest of a version's build names the versions that were released at the same commit, and the commits that touched the
// module since its version before: up to the release's own commit where that is in the list of commits, and else, as for a
// release branch, up to the release's time.
//
// # Invariants
//
//   - A command's id is a hash of all that the command says. So the same files give the same commands for ever, and files
//     that grew at their end only add.
//   - The commands of one build go out in order; all others may go in any.
//   - Memory is bounded by the number of rows of one repository.
package lineage
