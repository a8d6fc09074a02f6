package main

import (
	"cmp"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
)

// shrinkAll writes pictures anew with 256 colours: a terminal has few, and shades of
// them at the edges of letters.
func shrinkAll(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.png"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := shrink(f); err != nil {
			return err
		}
	}
	return nil
}

func shrink(file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	img, err := png.Decode(in)
	in.Close()
	if err != nil {
		return err
	}
	bounds := img.Bounds()
	palette := frequentShades(img, 256)
	small := image.NewPaletted(bounds, palette)
	index := map[color.RGBA]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
			i, known := index[c]
			if !known {
				i = uint8(palette.Index(c))
				index[c] = i
			}
			small.SetColorIndex(x, y, i)
		}
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(out, small); err != nil {
		return err
	}
	return out.Close()
}

// frequentShades returns the n most frequent colors of an image. Shades that hardly differ
// count as one, which is represented by the most frequent of them.
func frequentShades(img image.Image, n int) color.Palette {
	const step = 12 // shades that differ by less are one
	near := func(c color.Color) color.RGBA {
		r, g, b, _ := c.RGBA()
		f := func(v uint32) uint8 { return uint8(min(255, (int(v>>8)+step/2)/step*step)) }
		return color.RGBA{f(r), f(g), f(b), 255}
	}
	counts, real := map[color.RGBA]int{}, map[color.RGBA]map[color.RGBA]int{}
	bounds := img.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
			s := near(c)
			counts[s]++
			if real[s] == nil {
				real[s] = map[color.RGBA]int{}
			}
			real[s][c]++
		}
	}
	shades := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		shades = append(shades, c)
	}
	slices.SortFunc(shades, func(a, b color.RGBA) int {
		if d := cmp.Compare(counts[b], counts[a]); d != 0 {
			return d
		}
		return cmp.Compare(int(a.R)<<16|int(a.G)<<8|int(a.B), int(b.R)<<16|int(b.G)<<8|int(b.B))
	})
	var palette color.Palette
	for _, s := range shades[:min(n, len(shades))] { // each by the shade of it that is there most
		var best color.RGBA
		for c, n := range real[s] {
			if n > real[s][best] || n == real[s][best] && c.R < best.R {
				best = c
			}
		}
		palette = append(palette, best)
	}
	return palette
}
