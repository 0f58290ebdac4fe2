package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/util/duration"
)

// none represents what is not known or not there.
const none = "-"

// table prints rows in columns.
type table struct {
	rows [][]string
}

func newTable(header ...string) *table { return &table{rows: [][]string{header}} }

// add appends a row; an empty cell gets a dash.
func (t *table) add(cells ...string) {
	for i, cell := range cells {
		cells[i] = cmp.Or(plain(cell), none)
	}
	t.rows = append(t.rows, cells)
}

// columns are the narrow ones, and the further ones of a wide table.
func columns(wide bool, narrow []string, further ...string) []string {
	if wide {
		return append(narrow, further...)
	}
	return narrow
}

// write aligns the columns. The last one is not padded.
func (t *table) write(to io.Writer) error {
	columns := tabwriter.NewWriter(to, 0, 8, 3, ' ', 0)
	for _, row := range t.rows {
		if _, err := fmt.Fprintln(columns, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return columns.Flush()
}

// plain keeps what a cluster says from moving the cursor of a terminal: control characters become spaces.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}

// of is "actual/wanted".
func of(actual, wanted int32) string { return fmt.Sprintf("%d/%d", actual, wanted) }

// age is the time since then, as kubectl writes it.
func age(then *timestamppb.Timestamp, now time.Time) string {
	if then == nil {
		return none
	}
	return duration.HumanDuration(now.Sub(then.AsTime()))
}

// word turns the name of an enumeration's value into one that people write: WORKLOAD_STATE_READ_ONLY into ReadOnly.
func word(value fmt.Stringer, prefix string) string {
	name := strings.TrimPrefix(value.String(), prefix)
	if name == "UNSPECIFIED" {
		return none
	}
	var text strings.Builder
	for _, part := range strings.Split(name, "_") {
		text.WriteString(part[:1] + strings.ToLower(part[1:]))
	}
	return text.String()
}
