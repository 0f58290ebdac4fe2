package lists

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"google.golang.org/protobuf/proto"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
)

const (
	// maxFilterDepth bounds what the parser and whatever walks its tree recurse into.
	maxFilterDepth = 32
	// maxItemCost is what a filter may cost for one item, in CEL's units, each of which is about a comparison: about a millisecond.
	maxItemCost = 10_000
	// MaxCallCost is what it may cost for all items of one call, about a second.
	MaxCallCost = 10_000_000
	// payAhead is how much is paid ahead at most where somebody pays: of a filter as most are, for about a hundred items.
	payAhead = 1000
	// maxFilterErrors is how many mistakes of a filter are reported.
	maxFilterErrors = 5
)

// Filters is what filters on one kind of resource are compiled in: one variable, the resource, and the time.
type Filters struct {
	variable string
	make     func() (*cel.Env, error)
}

// The filters on each kind of resource.
var (
	ClusterFilters   = newFilters("cluster", &plimsollv1.Cluster{})
	WorkloadFilters  = newFilters("workload", &plimsollv1.Workload{})
	ObjectFilters    = newFilters("object", &plimsollv1.ObjectState{})
	OperationFilters = newFilters("operation", &plimsollv1.Operation{}, &plimsollv1.ObjectKey{})
	EventFilters     = newFilters("event", &plimsollv1.Event{})
	FleetFilters     = newFilters("placement", &plimsollv1.FleetPlacement{}, &plimsollv1.Workload{})
)

// newFilters puts off what it costs until somebody filters. parts are messages in the resource that other files define.
func newFilters(variable string, resource proto.Message, parts ...proto.Message) *Filters {
	return &Filters{variable, sync.OnceValues(func() (*cel.Env, error) {
		registry, err := types.NewRegistry(append(parts, resource)...)
		if err != nil {
			return nil, err
		}
		kind := string(resource.ProtoReflect().Descriptor().FullName())
		return cel.NewEnv(
			cel.CustomTypeAdapter(registry), cel.CustomTypeProvider(enumsAsText{registry}),
			cel.Variable(variable, cel.ObjectType(kind)), cel.Variable("now", cel.TimestampType),
			cel.ParserRecursionLimit(maxFilterDepth),
		)
	})}
}

// A Filter is the compiled filter of one call. It may be used concurrently.
type Filter struct {
	environment *Filters
	program     cel.Program
	now         types.Timestamp
	spent       atomic.Uint64
	paid        atomic.Int64 // less what is spent of it
	pay         func(cost uint64) error
}

// Compile reads the filter of a request; nil: everything passes. What is wrong with it is INVALID_ARGUMENT.
func (e *Filters) Compile(text string) (*Filter, error) {
	if text == "" {
		return nil, nil
	}
	env, err := e.make()
	if err != nil {
		return nil, fmt.Errorf("make the environment of filters on %ss: %w", e.variable, err)
	}
	tree, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, badFilter(issues.Errors())
	}
	if !tree.OutputType().IsExactType(cel.BoolType) {
		return nil, BadFilter("filter.type", fmt.Sprintf("has type %s, but must be a boolean for each %s", tree.OutputType(), e.variable))
	}
	if mistakes := append(unknownEnumValues(tree.NativeRep()), costlyComparisons(tree.NativeRep())...); len(mistakes) > 0 {
		return nil, badFilter(mistakes)
	}
	program, err := env.Program(tree, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(maxItemCost), chargeJoined)
	if err != nil { // a constant that cannot be computed, such as a bad pattern
		return nil, BadFilter("filter.invalid", "cannot be used: "+err.Error())
	}
	return &Filter{environment: e, program: program, now: types.Timestamp{Time: time.Now()}}, nil
}

// ChargeTo has pay take what the filter costs from now on, and ahead at most as much as it has cost so far: each replica that is asked
// for a few items of a list pays for itself. An error of pay ends the computation.
func (f *Filter) ChargeTo(pay func(cost uint64) error) {
	if f != nil {
		f.pay = pay
	}
}

// charge has a cost paid.
func (f *Filter) charge(cost uint64) error {
	if f.Spend(cost); f.pay == nil {
		return nil
	}
	left := f.paid.Add(-int64(cost))
	if left >= 0 {
		return nil
	}
	more := max(min(payAhead, int64(f.Spent())), -left)
	if err := f.pay(uint64(more)); err != nil {
		return err
	}
	f.paid.Add(more)
	return nil
}

// Refill lets a watch compute its filter for further items.
func (f *Filter) Refill() {
	if f != nil {
		f.now = types.Timestamp{Time: time.Now()}
		f.spent.Store(0)
	}
}

// Spend takes a cost from what the call may spend.
func (f *Filter) Spend(cost uint64) { f.spent.Add(cost) }

// Spent is what the call has spent, in CEL's units.
func (f *Filter) Spent() uint64 { return f.spent.Load() }

// Passes reports whether the filter is true for an item. Not ok: the call has spent what its filter may cost, and the item was
// not looked at. It does not look at ctx while it computes: what one item may cost is bounded, and a context of its own for each item
// costs a tenth of what a filter does.
func (f *Filter) Passes(ctx context.Context, item proto.Message) (passes, ok bool, err error) {
	if f == nil {
		return true, true, nil
	}
	if f.spent.Load() >= MaxCallCost {
		return false, false, nil
	}
	if err := ctx.Err(); err != nil {
		return false, false, err
	}
	result, details, err := f.program.Eval(&filterVariables{f, item})
	if details != nil && details.ActualCost() != nil {
		if err := f.charge(*details.ActualCost()); err != nil {
			return false, false, err
		}
	}
	switch {
	case err == nil:
		return result == types.True, true, nil
	case strings.Contains(err.Error(), "cost limit exceeded"):
		return false, false, BadFilter("filter.cost", "costs too much to compute for one "+f.environment.variable+": use fewer loops and patterns")
	}
	var at *types.Err
	if errors.As(err, &at) {
		err = at
	}
	return false, false, BadFilter("filter.evaluation", fmt.Sprintf("cannot be computed for every %s: %v; use has(…) to test whether a field is set", f.environment.variable, err))
}

// filterVariables are the variables of a filter for one item.
type filterVariables struct {
	*Filter
	item proto.Message
}

// ResolveName implements [cel.Activation].
func (v *filterVariables) ResolveName(name string) (any, bool) {
	switch name {
	case v.environment.variable:
		return v.item, true
	case "now":
		return v.now, true
	}
	return nil, false
}

// Parent implements [cel.Activation].
func (v *filterVariables) Parent() cel.Activation { return nil }

// badFilter reports what is wrong with a filter, and where.
func badFilter(mistakes []*common.Error) error {
	var lines []string
	for _, mistake := range mistakes[:min(len(mistakes), maxFilterErrors)] {
		lines = append(lines, fmt.Sprintf("line %d, column %d: %s", mistake.Location.Line(), mistake.Location.Column()+1, mistake.Message))
	}
	return BadFilter("filter.invalid", "is not a valid CEL expression: "+strings.Join(lines, "; "))
}

// BadFilter is INVALID_ARGUMENT about a filter.
func BadFilter(reason, description string) error {
	return apierror.InvalidField("filter", reason, description)
}
