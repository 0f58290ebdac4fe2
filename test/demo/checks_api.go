package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// questions checks the API over REST, as curl sees it.
func (c *checks) questions(ctx context.Context) {
	c.check(ctx, "the printed curl line lists the workloads of prod-eu", func(ctx context.Context) (string, error) {
		if err := needsCurl(); err != nil {
			c.ran["curl"] = true // nothing on this machine could run it
			return "", err
		}
		output, err := c.paste(ctx, "curl")
		if err != nil {
			return "", err
		}
		return listedWorkloads(output, "prod-eu")
	})
	c.check(ctx, "the API rejects curl without a token", func(ctx context.Context) (string, error) {
		if err := needsCurl(); err != nil {
			return "", err
		}
		line := bearerHeader.ReplaceAllString(lineNamed(c.ports, "curl").command, `-o /dev/null -w '%{http_code}'`)
		status, _, err := run(ctx, line)
		if err != nil {
			return "", err
		}
		if status != "401" {
			return "", fmt.Errorf("%s: status %s instead of 401", line, status)
		}
		return "401", nil
	})
}

// bearerHeader is the argument of curl that carries the token.
var bearerHeader = regexp.MustCompile(`-H "Authorization: [^"]*"`)

func needsCurl() error {
	if _, err := exec.LookPath("curl"); err != nil {
		return skip("curl is not installed on this machine")
	}
	return nil
}

// listedWorkloads checks an answer of the API against the samples of a member.
func listedWorkloads(answer, member string) (string, error) {
	var listed plimsollv1.ListWorkloadsResponse
	if err := protojson.Unmarshal([]byte(answer), &listed); err != nil {
		return "", fmt.Errorf("the answer is not a list of workloads: %w: %s", err, cut(answer, 200))
	}
	var got, want []string
	for _, w := range listed.GetWorkloads() {
		got = append(got, w.GetCluster()+" "+w.GetNamespace()+"/"+w.GetName())
	}
	for _, s := range samples {
		if s.member == member {
			want = append(want, s.String())
		}
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		return "", fmt.Errorf("it lists %s instead of %s", strings.Join(got, ", "), strings.Join(want, ", "))
	}
	return strings.Join(got, ", "), nil
}

// orders checks that a reconcile can be ordered by gRPC and by the CLI.
func (c *checks) orders(ctx context.Context) {
	c.check(ctx, "the printed grpcurl line returns an operation", func(ctx context.Context) (string, error) {
		output, err := c.paste(ctx, "grpcurl")
		if err != nil {
			return "", err
		}
		var ordered plimsollv1.RequeueWorkloadResponse
		if err := protojson.Unmarshal([]byte(output), &ordered); err != nil {
			return "", fmt.Errorf("the answer is not an operation: %w: %s", err, cut(output, 200))
		}
		key := ordered.GetOperation().GetKey()
		if ordered.GetOperation().GetId() == "" || key.GetCluster() != "prod-eu" || key.GetName() != "web" {
			return "", fmt.Errorf("the operation is not for web in prod-eu: %s", output)
		}
		return key.GetController() + " of " + key.GetCluster() + " will look at " + key.GetNamespace() + "/" + key.GetName(), nil
	})
}

// commands checks the CLI's printed lines.
func (c *checks) commands(ctx context.Context) {
	c.check(ctx, "the printed line of the CLI lists all workloads", func(ctx context.Context) (string, error) {
		output, err := c.paste(ctx, "workloads")
		if err != nil {
			return "", err
		}
		return tableShows(output)
	})
	c.check(ctx, "plimsoll explain says why replicas are where they are", func(ctx context.Context) (string, error) {
		output, err := c.paste(ctx, "explain")
		if err != nil {
			return "", err
		}
		return explained(output)
	})
	c.check(ctx, "plimsoll requeue --wait returns a result", func(ctx context.Context) (string, error) {
		output, err := c.paste(ctx, "requeue")
		if err != nil {
			return "", err
		}
		result, _, _ := strings.Cut(output, "\n")
		if !strings.Contains(result, "web of prod-eu: Done") {
			return "", errors.New("it prints: " + output)
		}
		return result, nil
	})
}

// explained checks what plimsoll explain prints: the state of web in prod-eu, its plan, and a row for each replica.
func explained(output string) (string, error) {
	title, rest, _ := strings.Cut(output, "\n")
	if !strings.HasPrefix(title, namespace+"/deployment/web of prod-eu: ") || !strings.Contains(rest, "belong on spot") || !strings.Contains(rest, "web-") {
		return "", errors.New("it prints: " + output)
	}
	return title, nil
}

// tableShows checks that each sample has a row in the CLI's table.
func tableShows(table string) (string, error) {
	rows := strings.Split(strings.TrimSpace(table), "\n")
	for _, s := range samples {
		if !slices.ContainsFunc(rows, func(row string) bool {
			fields := strings.Fields(row)
			return slices.Contains(fields, s.member) && strings.Contains(row, s.name)
		}) {
			return "", fmt.Errorf("no row for %s:\n%s", s, table)
		}
	}
	if len(rows) != len(samples)+1 {
		return "", fmt.Errorf("there are %d rows instead of a header and %d:\n%s", len(rows), len(samples), table)
	}
	return fmt.Sprintf("%d of %d clusters", len(samples), len(memberNames)), nil
}

// slotsShown checks what kubectl prints of pods: each replica has a slot of its own, and they are those from 0 on.
func slotsShown(output string, replicas int) (string, error) {
	rows := strings.Split(strings.TrimSpace(output), "\n")
	column := strings.Index(rows[0], "SLOT")
	if column < 0 {
		return "", errors.New("kubectl shows no column SLOT: " + rows[0])
	}
	held := map[int]bool{}
	for _, row := range rows[1:] {
		text := ""
		if column < len(row) {
			text, _, _ = strings.Cut(row[column:], " ")
		}
		slot, err := strconv.Atoi(text)
		if err != nil || slot < 0 || slot >= replicas || held[slot] {
			return "", fmt.Errorf("a replica has the slot %q; each must have a different one from 0 to %d: %s", text, replicas-1, row)
		}
		held[slot] = true
	}
	if len(held) != replicas {
		return "", fmt.Errorf("there are %d replicas with a slot instead of %d", len(held), replicas)
	}
	return fmt.Sprintf("0 to %d", replicas-1), nil
}
