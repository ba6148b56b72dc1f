package seal

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"slices"

	"ken/capability"
)

// A Sealer seals the capabilities of one file, and reads a schema that several of them
// have once: of 6,067 real tools, one in five has the schema of another. It may keep the
// schemas that it is given. A nil Sealer remembers nothing. It is for one goroutine.
type Sealer struct {
	seed    maphash.Seed
	schemas map[uint64]*sealedSchema // by the hash of their bytes
}

// NewSealer returns a Sealer for many capabilities of one file.
func NewSealer() *Sealer {
	return &Sealer{seed: maphash.MakeSeed(), schemas: map[uint64]*sealedSchema{}}
}

// sealedSchema is what was read from a schema. It depends on nothing but the schema.
type sealedSchema struct {
	schema     json.RawMessage
	parameters []capability.Parameter // shared: nothing changes them after Seal
	findings   []capability.Finding

	read, scanned bool
}

const mostSchemas = 1 << 16 // that are remembered at a time

// of returns what is remembered of a schema. Where two have the same hash, the last is
// remembered.
func (s *Sealer) of(schema json.RawMessage) *sealedSchema {
	if s == nil {
		return &sealedSchema{schema: schema}
	}
	key := maphash.Bytes(s.seed, schema)
	known := s.schemas[key]
	if known == nil || !bytes.Equal(known.schema, schema) {
		if len(s.schemas) >= mostSchemas {
			clear(s.schemas)
		}
		known = &sealedSchema{schema: schema}
		s.schemas[key] = known
	}
	return known
}

// parameters is [Parameters].
func (s *Sealer) parameters(schema json.RawMessage) []capability.Parameter {
	if len(schema) == 0 {
		return nil
	}
	known := s.of(schema)
	if !known.read {
		known.parameters, known.read = slices.Clip(Parameters(schema)), true
	}
	return known.parameters
}

// findings returns what the scan finds in a schema.
func (s *Sealer) findings(schema json.RawMessage) []capability.Finding {
	known := s.of(schema)
	if !known.scanned {
		known.findings, known.scanned = Findings("schema", ScanText(SchemaText(schema))), true
	}
	return known.findings
}
