package reconciletest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// fieldManager is whose the fields are that scripts apply.
const fieldManager = "scenario"

// story is one run of a script.
type story struct {
	*Scenario

	files map[string][]byte
	since map[string]func(context.Context) ([]string, error)
}

// target is the member that the first word names.
func (s *story) target(args []string, atLeast int) (Target, error) {
	if len(args) < atLeast {
		return Target{}, fmt.Errorf("%d words are wanted after the command, there are %d", atLeast, len(args))
	}
	t, ok := s.Members[args[0]]
	if !ok {
		return t, fmt.Errorf("there is no member %q", args[0])
	}
	return t, nil
}

func (s *story) file(name string) ([]byte, error) {
	data, ok := s.files[name]
	if !ok {
		return nil, fmt.Errorf("there is no file %q in the archive", name)
	}
	return data, nil
}

func (s *story) apply(ctx context.Context, args []string) error {
	t, err := s.target(args, 2)
	if err != nil {
		return err
	}
	for _, name := range args[1:] {
		data, err := s.file(name)
		if err != nil {
			return err
		}
		objects, err := manifests(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, u := range objects {
			if u.GetNamespace() == "" && s.Env["NS"] != "" {
				if namespaced, err := t.Client.IsObjectNamespaced(u); err == nil && namespaced {
					u.SetNamespace(s.Env["NS"])
				}
			}
			config := client.ApplyConfigurationFromUnstructured(u)
			if err := t.Client.Apply(ctx, config, client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// manifests are the objects of a YAML file.
func manifests(data []byte) (objects []*unstructured.Unstructured, err error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		one, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(one, &u.Object); err != nil {
			return nil, err
		}
		if len(u.Object) > 0 {
			objects = append(objects, u)
		}
	}
}

func (s *story) patch(ctx context.Context, args []string) error {
	return s.change(args, func(t Target, obj client.Object, patch client.Patch) error { return t.Client.Patch(ctx, obj, patch) })
}

func (s *story) status(ctx context.Context, args []string) error {
	return s.change(args, func(t Target, obj client.Object, patch client.Patch) error {
		return t.Client.Status().Patch(ctx, obj, patch)
	})
}

func (s *story) change(args []string, do func(t Target, obj client.Object, patch client.Patch) error) error {
	t, err := s.target(args, 3)
	if err != nil {
		return err
	}
	obj, err := s.object(t, args[1])
	if err != nil {
		return err
	}
	data, err := s.file(args[2])
	if err != nil {
		return err
	}
	body, err := yaml.YAMLToJSON(data)
	if err != nil {
		return fmt.Errorf("%s: %w", args[2], err)
	}
	return do(t, obj, client.RawPatch(types.MergePatchType, body))
}

func (s *story) delete(ctx context.Context, args []string) error {
	t, err := s.target(args, 2)
	if err != nil {
		return err
	}
	obj, err := s.object(t, args[1])
	if err != nil {
		return err
	}
	return t.Client.Delete(ctx, obj, client.PropagationPolicy("Background"))
}

func (s *story) wait(ctx context.Context, args []string) error {
	return Until(ctx, func(ctx context.Context) error { return s.expect(ctx, args) })
}

func (s *story) expect(ctx context.Context, args []string) error {
	t, err := s.target(args, 3)
	if err != nil {
		return err
	}
	obj, err := s.object(t, args[1])
	if err != nil {
		return err
	}
	err = t.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	for _, check := range args[2:] {
		if err := holds(check, obj, err == nil); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) remember(_ context.Context, args []string) error {
	t, err := s.target(args, 1)
	if err != nil {
		return err
	}
	if t.Writes == nil {
		return errors.New("it is not known what is written to this member")
	}
	s.since[args[0]], err = t.Writes()
	return err
}

func (s *story) expectNoWrites(ctx context.Context, args []string) error {
	if _, err := s.target(args, 1); err != nil {
		return err
	}
	since := s.since[args[0]]
	if since == nil {
		return errors.New("say remember first")
	}
	writes, err := since(ctx)
	if err == nil && len(writes) > 0 {
		err = fmt.Errorf("there were %d: %s", len(writes), strings.Join(writes, ", "))
	}
	return err
}
