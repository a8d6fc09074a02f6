package main

import (
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/png"
	"os"
	"path/filepath"
)

// frameDelay is the time that a frame is shown, in hundredths of a second. Frames are
// recorded once a second, so the animation runs at three times the real speed.
const frameDelay = 33

// animate writes the frames of a directory (frame-*.png, in order of their names) as one
// GIF. A frame holds only the rectangle that differs from the frame before it, and
// pixels in it that do not differ are transparent.
func animate(dir, file string) error {
	names, err := filepath.Glob(filepath.Join(dir, "frame-*.png"))
	if err != nil || len(names) == 0 {
		return errors.Join(err, errors.New("no frames in "+dir))
	}
	var out gif.GIF
	var before *image.RGBA
	for _, name := range names {
		now, err := readFrame(name)
		if err != nil {
			return err
		}
		changed := now.Bounds()
		if before != nil {
			changed = difference(before, now)
		}
		if changed.Empty() { // an unchanged frame prolongs the one before it
			out.Delay[len(out.Delay)-1] += frameDelay
			continue
		}
		out.Image = append(out.Image, paletted(before, now, changed))
		out.Delay = append(out.Delay, frameDelay)
		out.Disposal = append(out.Disposal, gif.DisposalNone)
		before = now
	}
	out.Delay[len(out.Delay)-1] += 200
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := gif.EncodeAll(f, &out); err != nil {
		return err
	}
	return f.Close()
}

func readFrame(name string) (*image.RGBA, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		return nil, err
	}
	rgba := image.NewRGBA(img.Bounds())
	draw.Draw(rgba, rgba.Bounds(), img, img.Bounds().Min, draw.Src)
	return rgba, nil
}

// difference returns the smallest rectangle outside of which two frames are equal.
func difference(a, b *image.RGBA) (r image.Rectangle) {
	for y := b.Rect.Min.Y; y < b.Rect.Max.Y; y++ {
		for x := b.Rect.Min.X; x < b.Rect.Max.X; x++ {
			if a.RGBAAt(x, y) != b.RGBAAt(x, y) {
				r = r.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return r
}

// paletted reduces a part of a frame to its most frequent shades and transparency.
func paletted(before, now *image.RGBA, part image.Rectangle) *image.Paletted {
	shades := frequentShades(now.SubImage(part), 63)
	img := image.NewPaletted(part, append(color.Palette{color.RGBA{}}, shades...))
	index := map[color.RGBA]uint8{}
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			c := now.RGBAAt(x, y)
			if before != nil && before.RGBAAt(x, y) == c {
				continue // transparent
			}
			i, known := index[c]
			if !known {
				i = uint8(shades.Index(c)) + 1
				index[c] = i
			}
			img.SetColorIndex(x, y, i)
		}
	}
	return img
}
