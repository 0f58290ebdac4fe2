// Command dashboards writes the Grafana dashboards of the chart, one JSON file each, into a folder. With -check it compares
// instead, and ends with 1 where a file is not what the code makes.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	check := flag.Bool("check", false, "compare instead of writing")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: dashboards [-check] FOLDER")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

// run writes or compares all files. One that no dashboard makes is refused, because the chart would ship it.
func run(folder string, check bool) error {
	files := map[string][]byte{}
	for _, b := range boards {
		text, err := render(b)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		files[b.name+".json"] = text
	}
	there, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return err
	}
	for _, path := range there {
		if _, ours := files[filepath.Base(path)]; !ours {
			return fmt.Errorf("%s is none of the dashboards: delete it", path)
		}
	}
	for name, text := range files {
		path := filepath.Join(folder, name)
		if !check {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				return err
			}
			continue
		}
		committed, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(committed, text) {
			return fmt.Errorf("%s is not what tools/dashboards makes: make dashboards", path)
		}
	}
	return nil
}

func render(b board) ([]byte, error) {
	built, err := build(b)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // queries are to be read in a diff
	encoder.SetIndent("", " ")
	if err := encoder.Encode(built); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}
