package review_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/review"
)

// TestMarkChecks marks what a list of checks runs, and not what it only looks at.
func TestMarkChecks(t *testing.T) {
	t.Parallel()
	const checks = `docker compose -f web/compose.yaml config --quiet
sh scripts/verify.sh web/compose.yaml
cd web && ./check.py --strict
env A=./x timeout 1.5 ./bin/lint
FAST=1 bash -c 'cd tools; python3 "render.py" | diff - expected'
make -C build docker
node tools/audit
go vet ./...
timeout 60 docker compose -f web/compose.yaml config -q
env D=x docker compose -f web/compose.yaml config -q
python3 -m yamllint stacks/web.yaml
python3.11 -m ci.policy stacks/web.yaml
nohup ./late.sh < other.yaml
sh < piped.sh
./each/*.sh
this does (not parse: broken.sh
yamllint -c lint/rules.yaml --strict . && conftest test --policy=lint/deny.rego web
go run ./cmd/audit web
npm test && run-parts checks && bun ci/own.ts
`
	scripts := map[string]string{
		"scripts/verify.sh": "set -e\nfor file in \"$@\"; do\n\t. \"$(dirname \"$0\")/rules.sh\"\ndone\n",
		"tools/audit":       "#!/usr/bin/env node\nrequire('./deeper/x')\n", "bin/lint": "#!/bin/bash\nexec ./bin/lint bin/more\n. ./bin/more\n",
		"bin/more": "python3 bin/most.py\n",
		"Makefile": "docker:\n\t@sh ci/verify.sh $(FILES)\n\t-echo $(FILES)\n", "package.json": `{"scripts": {"test": "node ci/all.js && eslint ."}}`,
	}
	read := func(name string) string { return scripts[name] }
	for name, marked := range map[string]bool{
		"scripts/verify.sh": true, "web/check.py": true, "bin/lint": true, "tools/render.py": true, "build/x": false,
		"tools/audit/index.js": true, "docker/compose.yaml": false, "expected": false, "main.go": false, "verify": false,
		"stacks/web.yaml": false, "ci/policy.py": true, "late.sh": true, "piped.sh": true, "each/a.sh": true, "broken.sh": true,
		"web/compose.yaml": false, "other.yaml": false,
		"scripts/rules.sh": true, "ci/verify.sh": true, "ci/all.js": true, "ci/own.ts": true, "checks/10-port": true, "bin/more": true, "bin/most.py": true, "deeper/x": false, "cmd/audit/main.go": true, "cmd/other/main.go": false,
		"lint/rules.yaml": true, "lint/deny.rego": true, "web": false,
	} {
		files := []review.File{{Path: name}}
		review.MarkChecks(files, checks, read)
		require.Equal(t, marked, files[0].Checks, name)
	}
	files := []review.File{{Path: "scripts/verify.sh", Checks: true}}
	require.Equal(t, review.ClassGate, files[0].Class())
	review.MarkChecks(files, "docker compose -f scripts/verify.sh config", read)
	require.Equal(t, review.ClassOrdinary, files[0].Class())
	review.MarkChecks(files, "if scripts/verify.sh # not a whole command", read)
	require.Equal(t, review.ClassGate, files[0].Class(), "what cannot be read counts word by word")
}
