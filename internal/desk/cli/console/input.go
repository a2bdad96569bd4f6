package console

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// InputFlags holds the flags of `run` and `schedule create` that describe the input of a chain.
type InputFlags struct {
	RequestFlags

	tier     escalation.Tier
	maxTier  escalation.Tier
	services ServicesFlag
	dryRun   bool
	models   map[string]string
}

// RequestFlags holds the flags that say what agents are asked to do, and where they work.
type RequestFlags struct {
	prompt     string
	promptFile string
	// Repository is the working directory; empty for the workers' own.
	Repository string
}

// Register adds the flags of o to flags.
func (o *RequestFlags) Register(flags *pflag.FlagSet) {
	flags.StringVarP(&o.prompt, "prompt", "p", "", "what to look at or to do, in your words")
	flags.StringVar(&o.promptFile, "prompt-file", "", "file to read the prompt from; - is standard input")
	flags.StringVar(&o.Repository, "repository", "",
		"directory to work in: one that CLAUDEOPS_REPOSITORIES of the workers lists")
}

// Request returns the text of the prompt. If the name of the prompt file is -, Request reads the prompt from stdin.
func (o *RequestFlags) Request(stdin io.Reader) (string, error) {
	switch {
	case o.prompt != "" && o.promptFile != "":
		return "", errors.New("--prompt and --prompt-file exclude each other")
	case o.promptFile != "":
		return readPrompt(o.promptFile, stdin)
	}
	return o.prompt, nil
}

// Register adds the flags of o to flags.
func (o *InputFlags) Register(flags *pflag.FlagSet) {
	tiers := escalation.Tiers()
	flags.Var(TierFlag{Tier: &o.tier, Allowed: tiers}, "tier", "tier to start with (default 1)")
	flags.Var(TierFlag{Tier: &o.maxTier, Allowed: tiers}, "max-tier",
		"highest tier that may run (default: the worker's)")
	o.RequestFlags.Register(flags)
	flags.VarP(&o.services, "service", "s", "service to limit the chain to; can be repeated")
	flags.BoolVar(&o.dryRun, "dry-run", false, "look and report only: nothing escalates, nothing is changed")
	flags.StringToStringVar(&o.models, "model", nil, "another model for a tier, such as tier2=opus; can be repeated")
}

// Input returns the validated workflow input that the flags describe. If the name of the prompt file is -, Input reads
// the prompt from stdin.
func (o *InputFlags) Input(stdin io.Reader) (workflows.ChainInput, error) {
	input, err := o.said(stdin)
	if err != nil {
		return input, err
	}
	return input, input.Validate()
}

// Changes is like Input, but for Overlay. An empty name of a model stands for no other model.
func (o *InputFlags) Changes(stdin io.Reader) (workflows.ChainInput, error) {
	input, err := o.said(stdin)
	if err != nil {
		return input, err
	}
	checked := input
	checked.Models = overlayModels(nil, input.Models)
	return input, checked.Validate()
}

func (o *InputFlags) said(stdin io.Reader) (workflows.ChainInput, error) {
	input := workflows.ChainInput{
		StartTier:  o.tier,
		MaxTier:    o.maxTier,
		Services:   o.services,
		DryRun:     o.dryRun,
		Repository: o.Repository,
	}
	var err error
	if input.Prompt, err = o.Request(stdin); err != nil {
		return input, err
	}
	input.Models, err = modelsOf(o.models)
	return input, err
}

// overlayModels returns models with those of changes. An empty name removes the model of a tier.
func overlayModels(models, changes map[escalation.Tier]string) map[escalation.Tier]string {
	changed := map[escalation.Tier]string{}
	maps.Copy(changed, models)
	maps.Copy(changed, changes)
	maps.DeleteFunc(changed, func(_ escalation.Tier, model string) bool { return model == "" })
	return changed
}

// Overlay returns input with the fields that the given flags describe. The parameter said is the result of Changes.
func Overlay(input, said workflows.ChainInput, given func(flag string) bool) workflows.ChainInput {
	for flag, change := range map[string]func(){
		"tier":        func() { input.StartTier = said.StartTier },
		"max-tier":    func() { input.MaxTier = said.MaxTier },
		"prompt":      func() { input.Prompt = said.Prompt },
		"prompt-file": func() { input.Prompt = said.Prompt },
		"service":     func() { input.Services = said.Services },
		"dry-run":     func() { input.DryRun = said.DryRun },
		"model":       func() { input.Models = overlayModels(input.Models, said.Models) },
		"repository":  func() { input.Repository = said.Repository },
	} {
		if given(flag) {
			change()
		}
	}
	return input
}

// modelsOf parses the values of --model.
func modelsOf(given map[string]string) (map[escalation.Tier]string, error) {
	if len(given) == 0 {
		return nil, nil
	}
	models := make(map[escalation.Tier]string, len(given))
	for name, model := range given {
		number, err := strconv.Atoi(strings.TrimPrefix(name, "tier"))
		if err != nil || !escalation.Tier(number).Valid() {
			return nil, fmt.Errorf("--model %s=%s names no tier: write tier1, tier2 or tier3 before the =", name, model)
		}
		models[escalation.Tier(number)] = model
	}
	return models, nil
}

func readPrompt(file string, stdin io.Reader) (string, error) {
	var data []byte
	var err error
	if file == "-" {
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(file) //nolint:gosec // the operator names the file
	}
	if err != nil {
		return "", fmt.Errorf("read the prompt: %w", err)
	}
	if strings.TrimSpace(string(data)) == "" {
		return "", fmt.Errorf("the prompt file %s is empty", file)
	}
	return string(data), nil
}
