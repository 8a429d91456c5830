// Package depot keeps artifacts in the ledger, by digest, and gives them out over the bus.
//
// It owns the object bucket of artifacts, the service in front of it and its client, and the rule by which artifacts are kept
// ([Sweep]). It leaves what an agent does with an artifact to agent/artifacts and the drivers, and the record of what was published to
// commands.
//
// An upload is a row of pieces under a subject of its own, each guarded by the one before it, so that several who upload the same thing
// write one row between them, and whoever comes back goes on where the row ends. When it is whole the service reads all of it, and only
// what has the digest gets a description, which is what makes it an artifact. An upload that has not grown for a day is removed.
//
// Invariants:
//   - What has a description was read from the store and had the digest.
//   - An artifact is removed only if nothing has happened to it since that was decided: the description is what is compared.
//   - No request has the service hold more than a window of pieces ([WindowBytes]), however large the artifact.
package depot
