//go:build unix

package main_test

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestBrowserPictures takes pictures of the main views for the documentation, in
// the folder that KEN_PICTURES names; elsewhere it says that they can be taken.
func TestBrowserPictures(t *testing.T) {
	dir := os.Getenv("KEN_PICTURES")
	if dir == "" {
		dir = t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	findBrowser(t).play(t, filepath.Join("..", "..", "testdata", "browser", "pictures.mjs"), dir)
	pictures, err := filepath.Glob(filepath.Join(dir, "*.png"))
	if err != nil || len(pictures) == 0 {
		t.Fatalf("pictures = %v, %v", pictures, err)
	}
	for _, file := range pictures {
		if err := shrink(file); err != nil {
			t.Errorf("shrink %s: %v", file, err)
		}
	}
}

// shrink writes a picture with at most 256 colours: a page has few, and the file
// becomes less than half as large.
func shrink(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	from, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		return err
	}
	count := map[color.RGBA]int{}
	bounds := from.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)]++
		}
	}
	colours := fewest(count)
	to := image.NewPaletted(bounds, colours)
	nearest := map[color.RGBA]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)
			at, ok := nearest[c]
			if !ok {
				at = uint8(colours.Index(c))
				nearest[c] = at
			}
			to.SetColorIndex(x, y, at)
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// fewest picks 256 of the colours that were counted: one of each sort, so that no
// small dot loses its own, and then those that there are most of.
func fewest(count map[color.RGBA]int) color.Palette {
	most := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	var first, rest []color.Color
	seen := map[[3]uint8]bool{}
	for _, c := range most {
		sort := [3]uint8{c.R >> 5, c.G >> 5, c.B >> 5}
		if seen[sort] {
			rest = append(rest, c)
			continue
		}
		seen[sort] = true
		first = append(first, c)
	}
	all := append(first, rest...)
	return all[:min(256, len(all))]
}
