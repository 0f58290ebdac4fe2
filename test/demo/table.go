package main

import (
	"strings"
	"unicode/utf8"
)

// span is a text in a style.
type span struct {
	text string
	how  style
}

// cell is what stands in one place of a table.
type cell []span

// styled is a cell with one text.
func styled(text string, how style) cell { return cell{{text, how}} }

// width of the cell in characters.
func (c cell) width() (total int) {
	for _, part := range c {
		total += utf8.RuneCountInString(part.text)
	}
	return total
}

// table lines cells up in columns, each as wide as its widest cell, the last one as long as it likes.
func (s *screen) table(rows [][]cell) []string {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], c.width())
		}
	}
	lines := make([]string, len(rows))
	for r, row := range rows {
		var line strings.Builder
		for i, c := range row {
			line.WriteString("  ")
			for _, part := range c {
				line.WriteString(s.paint(part.how, part.text))
			}
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-c.width()))
			}
		}
		lines[r] = strings.TrimRight(line.String(), " ")
	}
	return lines
}

// heads makes a row of headings.
func heads(texts ...string) []cell {
	row := make([]cell, len(texts))
	for i, text := range texts {
		row[i] = styled(text, faint)
	}
	return row
}
