package guard_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/guard"
)

// obeyed lists files that programs, editors, CI systems and agents run or obey by themselves, each with the place where
// its program looks for it.
const obeyed = `
.netrc .kube/config .docker/config.json .config/git/config .config/git/ignore
.git/hooks/post-checkout .git/config .gitmodules .gitattributes .gitconfig .lfsconfig .hg/hgrc .githooks/pre-push .husky/pre-commit
.github/workflows/ci.yml .github/actions/build/action.yml .github/dependabot.yml .github/CODEOWNERS .github/copilot-instructions.md
.gitlab-ci.yml ci/build.gitlab-ci.yml .gitlab/agents/a/config.yaml .gitea/workflows/ci.yaml .forgejo/workflows/ci.yaml
.circleci/config.yml .drone.yml .drone.yaml .drone.star .drone.jsonnet .woodpecker.yml .woodpecker.yaml .woodpecker/test.yml
.buildkite/pipeline.yml Jenkinsfile Jenkinsfile.deploy azure-pipelines.yml .azure-pipelines/ci.yml bitbucket-pipelines.yml .travis.yml
appveyor.yml .appveyor.yml .cirrus.yml .cirrus.star .semaphore/semaphore.yml .tekton/push.yaml .teamcity/settings.kts .build.yml
.builds/a.yml buildspec.yml cloudbuild.yaml codefresh.yml .gocd.yaml .vela.yml wercker.yml renovate.json .renovaterc.json .mergify.yml
netlify.toml vercel.json
.devcontainer/devcontainer.json .devcontainer.json .vscode/tasks.json .vscode/settings.json .idea/workspace.xml a.code-workspace
.gitpod.yml .exrc .vimrc .nvim.lua .dir-locals.el .zed/tasks.json .fleet/run.json
.envrc .env .env.local mise.toml .mise.toml mise.local.toml .mise/config.toml .tool-versions .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs
.cargo/config.toml ansible.cfg bunfig.toml
.pre-commit-config.yaml .pre-commit-config.yml lefthook.yml .lefthook.toml lefthook-local.yml .overcommit.yml .lintstagedrc.json
CLAUDE.md CLAUDE.local.md .claude/settings.json .mcp.json AGENTS.md AGENTS.override.md AGENT.md GEMINI.md .gemini/settings.json QWEN.md
.cursor/mcp.json .cursor/rules/a.mdc .cursorrules .windsurfrules .windsurf/rules/a.md .aider.conf.yml .clinerules .clinerules/a.md
.roo/mcp.json .roomodes .continue/config.yaml .junie/guidelines.md .amazonq/rules/a.md .kiro/steering/a.md .codex/config.toml
.opencode/agent/a.md opencode.json .goosehints .augment-guidelines
compose.yaml docker-compose.override.yml
`

// TestKeptFiles checks that Tier 2 changes none of these files, in no directory and in no spelling, and that it changes
// others.
func TestKeptFiles(t *testing.T) {
	t.Parallel()
	place, _ := stage(t)
	p := policy(t)
	g := guard.New(p, guard.Host{})
	edits := func(path string) bool {
		input, err := json.Marshal(map[string]string{"file_path": path})
		require.NoError(t, err)
		return g.Decide(guard.Call{Tier: 2, Tool: "Edit", Input: input, Place: place}).Allowed
	}
	for name := range strings.FieldsSeq(obeyed) {
		for _, each := range []string{name, strings.ToUpper(name), strings.ToLower(name), strings.ReplaceAll(name, "s", "ſ")} {
			require.False(t, edits(filepath.Join(place.Work[0], each)), each)
			require.False(t, edits(filepath.Join(place.Work[0], "sub/deeper", each)), each)
		}
	}
	for _, name := range []string{
		"README.md", "config/nginx.conf", "main.go", "renovated", "environment", "claude.mdx", "docs/agents/README.md", "cursor/x", "Makefile",
		"gitlab/x", "values.yaml", "playbooks/site.yml",
	} {
		require.True(t, edits(filepath.Join(place.Work[0], name)), name)
	}
}
