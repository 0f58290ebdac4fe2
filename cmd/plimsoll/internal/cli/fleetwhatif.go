package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

// fleetSupposition is what the flags of what-if say that are about FleetPlacements only.
type fleetSupposition struct {
	extra, perMember, perDomain int32
	domain                      string
	tiers, prices               []string
}

// fleetFlags are their names.
var fleetFlags = []string{"extra-spot", "tier", "price", "max-per-member", "max-per-domain", "domain-label"}

func (s *fleetSupposition) flags(flags *pflag.FlagSet) {
	flags.Int32Var(&s.extra, "extra-spot", 0, "FleetPlacement: extra replicas that may run on spot")
	flags.StringArrayVar(&s.tiers, "tier", nil, "FleetPlacement, repeatable: clusters by labels of their registrations, such as 'region=eu;weight=2;max=10|region=us'; replaces its own tiers")
	flags.StringArrayVar(&s.prices, "price", nil, "FleetPlacement, repeatable: the price of a replica, such as 'region=eu;spot=1;on-demand=2.5'; replaces its own prices")
	flags.Int32Var(&s.perMember, "max-per-member", 0, "FleetPlacement: maximum percentage in one member; 0: no limit")
	flags.Int32Var(&s.perDomain, "max-per-domain", 0, "FleetPlacement: maximum percentage in one failure domain; 0: no limit")
	flags.StringVar(&s.domain, "domain-label", "", "FleetPlacement: the label of registrations that names the failure domain")
}

// checkFlags refuses flags that the resource does not have.
func checkFlags(flags *pflag.FlagSet, fleet bool) error {
	wrong, about := fleetFlags, "FleetPlacements"
	if fleet {
		wrong, about = []string{"strategy"}, "workloads of one cluster"
	}
	for _, flag := range wrong {
		if flags.Changed(flag) {
			return errNoFleetFlag(flag, about)
		}
	}
	return nil
}

// request makes the question. What is not given of the spread is as it is.
func (s *fleetSupposition) request(key fleetKey, both *supposition, flags *pflag.FlagSet, now *plimsollv1.FleetPlacement) (*plimsollv1.WhatIfFleetPlacementRequest, error) {
	request := &plimsollv1.WhatIfFleetPlacementRequest{Namespace: key.namespace, Name: key.name, IgnoreWindow: both.ignoreWindow}
	set := func(into **int32, flag string, value *int32) {
		if flags.Changed(flag) {
			*into = value
		}
	}
	set(&request.Replicas, "replicas", &both.replicas)
	set(&request.MinOnDemand, "min-on-demand", &both.floor)
	set(&request.SpotPercentage, "spot-percentage", &both.percentage)
	set(&request.ExtraSpot, "extra-spot", &s.extra)
	request.Spread = s.spread(flags, now)
	var err error
	for _, text := range s.tiers {
		tier := &plimsollv1.FleetTier{}
		for part := range strings.SplitSeq(text, "|") {
			choice := &plimsollv1.FleetChoice{}
			choice.Selector, err = settings(part, map[string]func(string) error{"weight": number(&choice.Weight), "min": number(&choice.Min), "max": number(&choice.Max)})
			if err != nil {
				return nil, fmt.Errorf("--tier %q: %w", text, err)
			}
			tier.Members = append(tier.Members, choice)
		}
		request.Tiers = append(request.Tiers, tier)
	}
	for _, text := range s.prices {
		price := &plimsollv1.FleetPrice{}
		price.Selector, err = settings(text, map[string]func(string) error{"spot": verbatim(&price.Spot), "on-demand": verbatim(&price.OnDemand)})
		if err == nil && (price.GetSpot() == "" || price.GetOnDemand() == "") {
			err = errors.New("must have spot=… and on-demand=…")
		}
		if err != nil {
			return nil, fmt.Errorf("--price %q: %w", text, err)
		}
		request.Prices = append(request.Prices, price)
	}
	return request, nil
}

// settings reads SELECTOR;KEY=VALUE;… with known keys; SELECTOR may be left out.
func settings(text string, known map[string]func(string) error) (selector string, err error) {
	for i, part := range strings.Split(text, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		set, is := known[key]
		switch {
		case is:
			if err := set(value); err != nil {
				return "", fmt.Errorf("%s: %w", part, err)
			}
		case i == 0:
			selector = strings.TrimSpace(part)
		default:
			return "", fmt.Errorf("%q: unknown key", part)
		}
	}
	return selector, nil
}

func number(into *int32) func(string) error {
	return func(text string) error {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return errors.New("must be a whole number from 0 on")
		}
		*into = int32(n)
		return nil
	}
}

func verbatim(into *string) func(string) error {
	return func(text string) error {
		*into = text
		return nil
	}
}

// supposeFleetPlacement asks what another policy would do, and writes the answer.
func supposeFleetPlacement(ctx context.Context, env Environment, conn *connection.Options, out *output, key fleetKey, s *fleetSupposition, both *supposition, flags *pflag.FlagSet) error {
	api, err := conn.Open(ctx)
	if err != nil {
		return err
	}
	defer api.Close()
	call, cancel := api.CallContext(ctx, 0)
	defer cancel()
	service := plimsollv1.NewFleetServiceClient(api)
	now, err := service.GetFleetPlacement(call, &plimsollv1.GetFleetPlacementRequest{Namespace: key.namespace, Name: key.name})
	if err != nil {
		return err
	}
	request, err := s.request(key, both, flags, now.GetPlacement())
	if err != nil {
		return err
	}
	answer, err := service.WhatIfFleetPlacement(call, request)
	if err != nil {
		return err
	}
	return out.write(env.Out, answer, []string{fleetPlacementName(answer.GetNow())}, func(to io.Writer) error {
		return fleetComparison(to, env.Now(), answer)
	})
}

func fleetComparison(to io.Writer, now time.Time, answer *plimsollv1.WhatIfFleetPlacementResponse) error {
	is := answer.GetNow()
	rows := newTable("", "NOW", "THEN")
	rows.add("Spot", fmt.Sprint(is.GetSpot().GetWanted()), fmt.Sprint(answer.GetSpot()))
	rows.add("On-demand", fmt.Sprint(is.GetOnDemand().GetWanted()), fmt.Sprint(answer.GetOnDemand()))
	rows.add("Insurance", fmt.Sprint(is.GetInsurance()), fmt.Sprint(answer.GetInsurance()))
	rows.add("Without a place", fmt.Sprint(is.GetUnplaced()), fmt.Sprint(answer.GetUnplaced()))
	rows.add("Cost", fmt.Sprintf("%g", answer.GetCostNow()), fmt.Sprintf("%g", answer.GetCostThen()))
	before := map[string]*plimsollv1.FleetMember{}
	for _, m := range is.GetMembers() {
		before[m.GetName()] = m
	}
	for _, m := range answer.GetThen() {
		was := before[m.GetName()]
		rows.add(m.GetName(), fmt.Sprintf("%d+%d", was.GetSpot().GetWanted(), was.GetOnDemand().GetWanted()),
			fmt.Sprintf("%d+%d", m.GetSpot().GetWanted(), m.GetOnDemand().GetWanted()))
	}
	if err := rows.write(to); err != nil {
		return err
	}
	for _, c := range answer.GetConditions() {
		fmt.Fprintf(to, "\n%s: %s\n", plain(c.GetType()), plain(c.GetMessage()))
	}
	if n := is.GetHiddenMembers(); n > 0 {
		fmt.Fprintf(to, "\n%d more members that you may not see\n", n)
	}
	if err := fleetMoves(to, now, "FIRST MOVES", answer.GetFirstMoves()); err != nil {
		return err
	}
	if n := answer.GetLater(); n > 0 {
		fmt.Fprintf(to, "\n%d more would wait for them\n", n)
	}
	return nil
}

// spread is the placement's, with what the flags change of it; nil: they change nothing.
func (s *fleetSupposition) spread(flags *pflag.FlagSet, now *plimsollv1.FleetPlacement) *plimsollv1.FleetSpread {
	perMember, perDomain, label := flags.Changed("max-per-member"), flags.Changed("max-per-domain"), flags.Changed("domain-label")
	if !perMember && !perDomain && !label {
		return nil
	}
	spread, ok := proto.Clone(now.GetPolicy().GetSpread()).(*plimsollv1.FleetSpread)
	if !ok || spread == nil {
		spread = &plimsollv1.FleetSpread{}
	}
	if perMember {
		spread.MaxPercentPerMember = s.perMember
	}
	if perDomain {
		spread.MaxPercentPerDomain = s.perDomain
	}
	if label {
		spread.DomainLabel = s.domain
	}
	return spread
}
