// Pack makes the file of a reader model of what training gives: the vocabulary,
// one piece a line, and the weights as float16 (see training/reader.py).
//
//	go run ./internal/know/reader/pack -vocab vocab.txt -weights weights-full.f16 \
//		-name ken-reader-1 -out internal/know/reader/model.bin
//
// The same input gives the same file on every machine.
package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"

	"ken/internal/know/reader"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run() error {
	vocab := flag.String("vocab", "", "`file` with the vocabulary, one piece a line")
	weights := flag.String("weights", "", "`file` with the weights, float16")
	name := flag.String("name", "", "name of the model")
	out := flag.String("out", "", "`file` to write")
	flag.Parse()
	pieces, err := os.ReadFile(*vocab)
	if err != nil {
		return err
	}
	numbers, err := os.ReadFile(*weights)
	if err != nil {
		return err
	}
	from := reader.Weights{
		Vocabulary: strings.Split(strings.TrimSuffix(string(pieces), "\n"), "\n"),
		Dims:       384, Inner: 1536, Positions: 512, Layers: 6,
	}
	for at := 0; at+1 < len(numbers); at += 2 {
		from.Numbers = append(from.Numbers, half(binary.LittleEndian.Uint16(numbers[at:])))
	}
	var file bytes.Buffer
	if err := reader.Pack(&file, *name, from); err != nil {
		return err
	}
	fmt.Printf("%s: %d bytes\n", *out, file.Len())
	return os.WriteFile(*out, file.Bytes(), 0o644)
}

// half returns the number that a float16 stands for.
func half(x uint16) float32 {
	sign, exponent, fraction := float64(1), int(x>>10&31), float64(x&1023)
	if x>>15 == 1 {
		sign = -1
	}
	switch exponent {
	case 0:
		return float32(sign * math.Ldexp(fraction, -24))
	case 31:
		return float32(math.Inf(int(sign)))
	}
	return float32(sign * math.Ldexp(1024+fraction, exponent-25))
}
