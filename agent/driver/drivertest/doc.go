// Package drivertest is the suite that every driver of agents passes.
//
// It owns what all of them have in common. It leaves what one does on its node to that driver's own tests.
package drivertest
