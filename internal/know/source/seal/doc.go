// Package seal completes the capabilities that a source has read.
//
// [Seal] fills in defaults, lists the parameters of the schema, computes the
// hash and scans every text that a model may see. Each source ends there, so
// none can leave out the scan. [Unchanged] compares what is read later with
// that hash.
package seal
