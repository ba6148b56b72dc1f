// Package manifest reads CAPABILITY.yaml, the description of one capability in a
// folder of its own.
package manifest
