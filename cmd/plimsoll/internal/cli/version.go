package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

// Headers of the hub's answers to calls that have aboutHeader in their metadata.
const (
	aboutHeader   = "plimsoll-about"
	versionHeader = "plimsoll-version"
	timeHeader    = "plimsoll-time" // of the replica that answers, RFC 3339 with nanoseconds
)

// aboutHub is what a replica of the hub reports of itself.
type aboutHub struct {
	version string
	clock   time.Time     // zero: it does not say
	skew    time.Duration // by how much it is ahead of ours
	// certificate is when that of the API ends; zero: it has none.
	certificate time.Time
}

// askAbout asks the hub what it is. A hub that does not let the caller list clusters answers that as well.
func askAbout(ctx context.Context, api *connection.Client, env Environment) (aboutHub, error) {
	call, cancel := api.CallContext(ctx, 0)
	defer cancel()
	var header metadata.MD
	var from peer.Peer
	call = metadata.AppendToOutgoingContext(call, aboutHeader, "1")
	before := env.Now()
	_, err := plimsollv1.NewClusterServiceClient(api).ListClusters(call, &plimsollv1.ListClustersRequest{PageSize: 1}, grpc.Header(&header), grpc.Peer(&from))
	after := env.Now()
	if err != nil && status.Code(err) != codes.PermissionDenied {
		return aboutHub{}, err
	}
	about := aboutHub{version: strings.Join(header.Get(versionHeader), ",")}
	if about.clock, err = time.Parse(time.RFC3339Nano, strings.Join(header.Get(timeHeader), ",")); err == nil {
		about.skew = skewOf(about.clock, before, after)
	}
	if secured, ok := from.AuthInfo.(credentials.TLSInfo); ok && len(secured.State.PeerCertificates) > 0 {
		about.certificate = secured.State.PeerCertificates[0].NotAfter
	}
	return about, nil
}

// skewOf is by how much a clock, which was read at some moment from before to after, is ahead of ours at least.
func skewOf(clock, before, after time.Time) time.Duration {
	switch {
	case clock.After(after):
		return clock.Sub(after)
	case clock.Before(before):
		return clock.Sub(before)
	}
	return 0
}

func versionCommand(env Environment) *cobra.Command {
	conn, out := connection.New(env.Getenv), output{}
	var clientOnly bool
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the client and the hub",
		Example: `  # Print both versions
  plimsoll version

  # Print the client's version, without asking the hub
  plimsoll version --client`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			versions := []string{"Client Version", clientVersion()}
			fields := map[string]any{"clientVersion": clientVersion()}
			if !clientOnly {
				about, err := hubVersion(c.Context(), env, conn)
				if err != nil {
					fmt.Fprintf(env.Out, "Client Version: %s\n", clientVersion())
					return err
				}
				fields["hubVersion"] = about
				versions = append(versions, "Hub Version", about)
			}
			answer, err := structpb.NewStruct(fields)
			if err != nil {
				return err
			}
			return out.write(env.Out, answer, nil, func(to io.Writer) error {
				for i := 0; i < len(versions); i += 2 {
					fmt.Fprintf(to, "%s: %s\n", versions[i], plain(versions[i+1]))
				}
				return nil
			})
		},
	}
	command.Flags().BoolVar(&clientOnly, "client", false, "print the client's version only")
	conn.AddFlags(command)
	out.flags(command)
	return command
}

func hubVersion(ctx context.Context, env Environment, conn *connection.Options) (string, error) {
	api, err := conn.Open(ctx)
	if err != nil {
		return "", err
	}
	defer api.Close()
	about, err := askAbout(ctx, api, env)
	return cmp.Or(about.version, "(unknown)"), err
}

// clientVersion is what this binary was built from.
func clientVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}
