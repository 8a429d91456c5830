// Package writer decides about the writer itself.
//
// It owns one rule: a start is always recorded. The record fences the writer before, and from it every lease counts as just
// renewed, since nobody could renew one while no writer ran.
package writer
