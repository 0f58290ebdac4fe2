package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/replay"
)

// replaying is what `plimsoll replay` was asked for.
type replaying struct {
	env           Environment
	setting       replay.Setting
	start, notice time.Duration
	format        string
	prices        bool
}

// replayName is the command that takes files.
const replayName = "replay"

func replayCommand(env Environment) *cobra.Command {
	r := replaying{env: env, setting: replay.Setting{Refusal: 10}}
	command := &cobra.Command{
		Use:   replayName + " {FOLDER | FILE}...",
		Short: "Replay recorded spot capacity under fleet placement and other policies",
		Long: `Replay recorded spot capacity with the plan of FleetPlacements and with other policies. For each it prints how much of the time all replicas
were ready, and their cost. The input is the ConfigMap with the history that a hub records (fleet.history.configMap in its configuration), as
YAML or JSON, or directories with a JSON file per cluster or zone (see docs/fleet.md). The command contacts no cluster.

OF ON-DEMAND is the cost relative to running all replicas on-demand, OF BOUND relative to the minimum cost if the future were known.`,
		Example: `  # Replay 12 replicas that take four minutes to start
  kubectl -n plimsoll-system get configmap fleet-history -o yaml > history.yaml
  plimsoll replay history.yaml --replicas 12 --start 4m --notice 30s --price-ratio 2.5`,
		Args: cobra.ArbitraryArgs,
		RunE: r.run,
	}
	r.flags(command)
	return command
}

func (r *replaying) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.IntVar(&r.setting.Replicas, "replicas", 4, "wanted number of ready replicas, 1 to 1000")
	flags.Float64Var(&r.setting.Ratio, "price-ratio", 3, "price of on-demand as a multiple of spot, where no prices are recorded")
	flags.DurationVar(&r.start, "start", 2*time.Minute, "time that a replica needs to be ready")
	flags.DurationVar(&r.notice, "notice", 30*time.Second, "how long before its removal a spot instance gets notice")
	flags.BoolVar(&r.prices, "prices", true, "use recorded prices")
	flags.StringVarP(&r.format, "output", "o", formatTable, "format: table, json")
}

// check reads the setting, and says what is wrong with what was given.
func (r *replaying) check(folders []string) error {
	if len(folders) == 0 {
		return errors.New("missing: FOLDER or FILE")
	}
	if r.format != formatTable && r.format != formatJSON {
		return fmt.Errorf("-o %q: must be one of %s, %s", r.format, formatTable, formatJSON)
	}
	r.setting.Start, r.setting.Notice = int64(r.start/time.Second), int64(r.notice/time.Second)
	switch {
	case r.start < time.Second || r.start > 24*time.Hour || r.start%time.Second != 0:
		return fmt.Errorf("--start %v: must be whole seconds, 1s to 24h", r.start)
	case r.notice < 0 || r.notice > 24*time.Hour || r.notice%time.Second != 0:
		return fmt.Errorf("--notice %v: must be whole seconds, 0s to 24h", r.notice)
	case r.setting.Replicas < 1 || r.setting.Replicas > 1000:
		return fmt.Errorf("--replicas %d: must be 1 to 1000", r.setting.Replicas)
	case !(r.setting.Ratio > 0) || r.setting.Ratio > 1000:
		return fmt.Errorf("--price-ratio %g: must be above 0, and 1000 at most", r.setting.Ratio)
	}
	return nil
}

func (r *replaying) run(c *cobra.Command, folders []string) error {
	if err := r.check(folders); err != nil {
		return usage(c, err)
	}
	traces, err := replay.FindTraces(folders)
	if err != nil {
		return err
	}
	var rows []replay.Row
	for _, t := range traces {
		if !r.prices {
			t = t.WithoutPrices()
		}
		compared, _ := replay.Compare(t, r.setting)
		rows = append(rows, compared...)
	}
	if r.format == formatJSON {
		encoder := json.NewEncoder(r.env.Out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(rows)
	}
	replay.Print(r.env.Out, rows)
	return nil
}
