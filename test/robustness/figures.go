package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A figure is an entry of build/bench.json, which holds those of test/bench as well.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// figures of an outcome.
func (v *Outcome) figures() []figure {
	return []figure{
		{"robustness-faults", float64(len(v.Faults)), "faults"},
		{"robustness-double-writes", float64(len(v.DoubleWrites)), "writes"},
		{"robustness-floor-breaks", float64(len(v.FloorBreaks)), "breaks"},
		{"robustness-budget-breaks", float64(len(v.BudgetBreaks)), "breaks"},
		{"robustness-lost-orders", float64(len(v.LostOrders)), "orders"},
	}
}

// mergeFigures puts figures into a file in place of those of the same name; others stay as they are.
func mergeFigures(path string, added []figure) error {
	var all []figure
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("write figures: %w", err)
	default:
		if err := json.Unmarshal(content, &all); err != nil {
			return fmt.Errorf("write figures: %s: %w", path, err)
		}
	}
	for _, f := range added {
		at := slices.IndexFunc(all, func(other figure) bool { return other.Name == f.Name })
		if at < 0 {
			all = append(all, f)
		} else {
			all[at] = f
		}
	}
	if content, err = json.MarshalIndent(all, "", "  "); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return os.WriteFile(path, append(content, '\n'), 0o644)
}
