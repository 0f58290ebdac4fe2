package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/replay"
)

func replayCommand(env Environment) *cobra.Command {
	setting := replay.Setting{Refusal: 10}
	start, notice := 2*time.Minute, 30*time.Second
	var format string
	var prices bool
	command := &cobra.Command{
		Use:   "replay {FOLDER | FILE}...",
		Short: "Replay recorded spot capacity under fleet placement and other policies",
		Long: `Replay recorded spot capacity with the plan of FleetPlacements and with other policies. For each it prints how much of the time all replicas
were ready, and their cost. The input is the ConfigMap with the history that a hub records (fleet.history.configMap in its configuration), as
YAML or JSON, or directories with a JSON file per cluster or zone (see docs/fleet.md). The command contacts no cluster.

OF ON-DEMAND is the cost relative to running all replicas on-demand, OF BOUND relative to the minimum cost if the future were known.`,
		Example: `  # Replay 12 replicas that take four minutes to start
  kubectl -n plimsoll-system get configmap fleet-history -o yaml > history.yaml
  plimsoll replay history.yaml --replicas 12 --start 4m --notice 30s --price-ratio 2.5`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, folders []string) error {
			if len(folders) == 0 {
				return usage(c, errors.New("missing: FOLDER or FILE"))
			}
			if format != formatTable && format != formatJSON {
				return usage(c, fmt.Errorf("-o %q: must be one of %s, %s", format, formatTable, formatJSON))
			}
			setting.Start, setting.Notice = int64(start/time.Second), int64(notice/time.Second)
			switch {
			case start < time.Second || start > 24*time.Hour || start%time.Second != 0:
				return usage(c, fmt.Errorf("--start %v: must be whole seconds, 1s to 24h", start))
			case notice < 0 || notice > 24*time.Hour || notice%time.Second != 0:
				return usage(c, fmt.Errorf("--notice %v: must be whole seconds, 0s to 24h", notice))
			case setting.Replicas < 1 || setting.Replicas > 1000:
				return usage(c, fmt.Errorf("--replicas %d: must be 1 to 1000", setting.Replicas))
			case !(setting.Ratio > 0) || setting.Ratio > 1000:
				return usage(c, fmt.Errorf("--price-ratio %g: must be above 0, and 1000 at most", setting.Ratio))
			}
			traces, err := replay.FindTraces(folders)
			if err != nil {
				return err
			}
			var rows []replay.Row
			for _, t := range traces {
				if !prices {
					t = t.WithoutPrices()
				}
				compared, _ := replay.Compare(t, setting)
				rows = append(rows, compared...)
			}
			if format == formatJSON {
				encoder := json.NewEncoder(env.Out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(rows)
			}
			replay.Print(env.Out, rows)
			return nil
		},
	}
	flags := command.Flags()
	flags.IntVar(&setting.Replicas, "replicas", 4, "wanted number of ready replicas, 1 to 1000")
	flags.Float64Var(&setting.Ratio, "price-ratio", 3, "price of on-demand as a multiple of spot, where no prices are recorded")
	flags.DurationVar(&start, "start", start, "time that a replica needs to be ready")
	flags.DurationVar(&notice, "notice", notice, "how long before its removal a spot instance gets notice")
	flags.BoolVar(&prices, "prices", true, "use recorded prices")
	flags.StringVarP(&format, "output", "o", formatTable, "format: table, json")
	return command
}
