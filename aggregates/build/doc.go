// Package build decides about builds: attempts to make something of a module at a commit.
//
// It owns a build's states and what leads from one to the next:
//
//	           ┌──────────► not-asked ─────┐
//	           │                           ├── reask: pending ► claimed ► asked as another build
//	(none) ─► asked ─► outcome-unknown ────┘
//	  │        │              │
//	  │        ├──────────────┤   an outcome is taken whenever it comes
//	  │        ▼              ▼
//	  └─► succeeded         failed
//	           │
//	           ▼
//	       published, once
//
// It leaves to others what is known of publications (publication) and where a build runs (assignment).
//
// Invariants: an outcome is final. A build publishes once, and only after it succeeded. A claimed re-ask is asked exactly
// once. What a build is asked to make never changes.
package build
