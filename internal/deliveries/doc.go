// Package deliveries reads delivery histories (one JSON object a line: who brought which version of what where, and when)
// and brings them into the chain as commands.
//
// It owns the format of rows and of state files, what each row means as a command, the ids that make an import repeatable,
// and the order in which commands go out. It leaves the rules to the writer, the connection to whoever hands it a
// [Poster], and the talk with people to the command line.
//
// Invariants:
//   - A row's meaning depends on the row alone; its command's id on the source's name, the row's content and how many equal
//     rows came before it. So the same file gives the same commands for ever, and a file that grew at its end only adds.
//   - Rows of one key are recorded in the order of the file, whatever is in flight, busy, lost or sent again.
//   - What was recorded by an earlier run, even one that was killed, is never recorded again.
//   - Memory is bounded by the number of keys and the rows in flight, plus 16 bytes and a count for each row.
package deliveries
