// Package systemd is the driver that writes a unit file and restarts its unit.
//
// It owns the unit file of each module. It leaves all of systemd's own work to systemctl.
//
// Invariants: a unit file is written whole or not at all; a unit is restarted only when its file is in place; a unit that does not come
// up is an error, with what systemctl says of it.
package systemd
