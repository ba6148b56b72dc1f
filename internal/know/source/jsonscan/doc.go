// Package jsonscan reads JSON text in place, without building values.
//
// A [Scanner] accepts what encoding/json accepts, except an object that names a
// key twice and deep nesting. Its errors say what is wrong, where, and how to
// correct it.
package jsonscan
