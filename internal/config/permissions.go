package config

import "slices"

// grant is one permission rule of the CLI and why it is there. In a rule about commands
// "*" stands for anything, and ":*" at its end for whatever arguments follow.
type grant struct {
	rule string
	why  string
}

// observing is what every tier may do: look. Beyond these rules the CLI runs commands
// that it knows to be harmless in all their spellings (df -h, free, uptime, ps aux, ss,
// docker ps, docker logs, docker inspect, cat and grep in the working directory) without
// one. They must not be granted here: a rule would allow their other spellings as well.
var observing = slices.Concat([]grant{
	{"Read(./**)", "files of the working directory, and no others"},
	{"Grep(./**)", "searches the same files; Glob is left out, because 2.1.197 lists any directory with it"},
}, plainGets, []grant{
	{"Bash(ping -c*)", "tells an unreachable host from an unreachable service; without a count it never ends"},
	{"Bash(dig:*)", "name resolution, a frequent cause of everything else"},

	{"Bash(docker stats --no-stream:*)", "what each container uses; without the flag it never ends"},
	{"Bash(docker compose ps:*)", "which containers of a project run, restart or have ended"},
	{"Bash(docker compose logs:*)", "what a project's containers said"},

	{"Bash(systemctl status:*)", "state and last log lines of a unit"},
	{"Bash(systemctl is-active:*)", "state of a unit as one word"},
	{"Bash(systemctl is-failed:*)", "the same for failure"},
	{"Bash(systemctl list-units:*)", "which units there are"},
	{"Bash(journalctl:*)", "logs of units and of the kernel"},

	{"Bash(kubectl get:*)", "what a cluster runs"},
	{"Bash(kubectl describe:*)", "events of a resource: pulls, probes, evictions"},
	{"Bash(kubectl logs:*)", "what a pod said"},
	{"Bash(kubectl top:*)", "what pods and nodes use"},
	{"Bash(kubectl rollout status:*)", "whether a rollout has finished"},
	{"Bash(helm list:*)", "which releases there are"},
	{"Bash(helm status:*)", "state of a release"},
	{"Bash(helm history:*)", "what changed, and when"},
})

// plainGets ask a service the way its users do. Only the spellings that the prompt
// tells are granted, each with the URL bare or in quotes, because most options of curl
// write files or send data. A rule in never denies whatever follows the URL.
var plainGets = []grant{
	{"Bash(curl -sS http*)", "the answer of a service"},
	{`Bash(curl -sS "http*)`, "the same, the URL in quotes"},
	{"Bash(curl -sS 'http*)", "the same, the URL in quotes"},
	{"Bash(curl -sSi http*)", "with status and headers"},
	{`Bash(curl -sSi "http*)`, "the same, the URL in quotes"},
	{"Bash(curl -sSi 'http*)", "the same, the URL in quotes"},
	{"Bash(curl -sSI http*)", "status and headers only"},
	{`Bash(curl -sSI "http*)`, "the same, the URL in quotes"},
	{"Bash(curl -sSI 'http*)", "the same, the URL in quotes"},
	{"Bash(curl -fsS http*)", "fails where the answer is an error"},
	{`Bash(curl -fsS "http*)`, "the same, the URL in quotes"},
	{"Bash(curl -fsS 'http*)", "the same, the URL in quotes"},
	{"Bash(curl -sS --max-time 10 http*)", "gives up on a service that hangs"},
	{`Bash(curl -sS --max-time 10 "http*)`, "the same, the URL in quotes"},
	{"Bash(curl -sS --max-time 10 'http*)", "the same, the URL in quotes"},
}

// safeRepair is what tier 2 adds: repairs that are safe to try, because they bring back
// what was there before, and changes that a person reviews.
var safeRepair = []grant{
	{"Bash(docker restart:*)", "the first remedy for a hung container"},
	{"Bash(docker start:*)", "a container that has ended"},
	{"Bash(docker compose up:*)", "brings a project to the state that its file describes"},
	{"Bash(docker compose restart:*)", "the first remedy, per project"},
	{"Bash(systemctl restart:*)", "the first remedy for a hung unit"},
	{"Bash(systemctl start:*)", "a unit that has ended"},
	{"Bash(systemctl reset-failed:*)", "lets a unit start again that gave up"},
	{"Bash(kubectl rollout restart:*)", "replaces pods one by one, without a gap"},

	{"Edit(./**)", "configuration in the working directory"},
	{"Write(./**)", "the same, new files"},
	{"Bash(git switch:*)", "a branch for a proposed change"},
	{"Bash(git add:*)", "part of a proposed change"},
	{"Bash(git commit:*)", "part of a proposed change"},
	{"Bash(git push:*)", "publishes the branch that a person reviews"},
	{"Bash(gh pr create:*)", "proposes a change instead of making it"},

	{"Bash(apprise:*)", "tells people what was done"},
}

// fullRepair is what tier 3 adds: redeployments, and whatever takes a service down first.
var fullRepair = []grant{
	{"Bash(ansible-playbook:*)", "redeploys a host or service from its description"},
	{"Bash(helm upgrade:*)", "redeploys a release"},
	{"Bash(helm rollback:*)", "goes back to the release that worked"},
	{"Bash(docker compose down:*)", "takes a project down, to build it anew"},
	{"Bash(docker compose pull:*)", "fetches the images that its file names"},
	{"Bash(docker stop:*)", "a container that must not run on"},
	{"Bash(systemctl stop:*)", "a unit that must not run on"},
	{"Bash(kubectl apply:*)", "brings a cluster to the state that files describe"},
	{"Bash(kubectl rollout undo:*)", "goes back to the rollout that worked"},
	{"Bash(kubectl scale:*)", "restarts from nothing, or gives more room"},
	{"Bash(kubectl delete pod:*)", "lets a stuck pod be scheduled anew"},
}

// never is denied to every tier. What is not granted is denied already; these rules hold
// back what a grant would let through by an option or an argument. Some are generous (a
// harmless line that looks like a bad one is denied, too), because the agent can say a
// harmless thing in another way. A determined spelling still passes some of them by: they
// are no boundary. Options count in every abbreviation that the program takes.
var never = slices.Concat(neverCommands, []grant{
	{"Bash(curl *http* *)", "an option after the URL sends data or writes a file"},
	{"Bash(curl*{*)", "curl puts the parts of such a URL together itself, and no rule sees its port"},
	{"Bash(curl*[*-*]*)", "the same"},
	{"Bash(curl*$*)", "the shell puts in what no rule sees"},
	{"Bash(dig* -f*)", "sends the lines of a file to a name server"},
	{"Bash(dig* -k*)", "opens a key file"},
}, neverOptions, portGrants(temporalPorts...))

var neverCommands = []grant{
	{"Bash(rm -rf /:*)", "destroys the host"},
	{"Bash(docker system prune:*)", "removes what others still need"},
	{"Bash(docker volume rm:*)", "persistent data"},
	{"Bash(docker volume prune:*)", "persistent data"},
	{"Bash(docker compose down* -v*)", "takes the volumes along"},
	{"Bash(docker compose down*--vol*)", "takes the volumes along"},
	{"Bash(kubectl delete pvc:*)", "persistent data"},
	{"Bash(kubectl delete pv:*)", "persistent data"},
	{"Bash(kubectl delete namespace:*)", "everything in it"},
	{"Bash(kubectl delete *,*)", "more kinds of resources than the one that is granted"},
	{"Bash(kubectl delete *--all*)", "everything of its kind"},
}

var neverOptions = []grant{
	{"Bash(kubectl *--ku*)", "--kubeconfig and --kuberc run programs that a file names, --kustomize fetches from elsewhere"},
	{"Bash(kubectl get* -k*)", "fetches from elsewhere"},
	{"Bash(kubectl describe* -k*)", "fetches from elsewhere"},
	{"Bash(kubectl *--server*)", "sends the cluster's credentials elsewhere"},
	{"Bash(kubectl * -s*)", "the same as --server"},
	{"Bash(kubectl * -As*)", "the same as --server"},
	{"Bash(kubectl *--cluster*)", "another cluster"},
	{"Bash(kubectl *--token*)", "another identity"},
	{"Bash(kubectl *--user*)", "another identity"},
	{"Bash(kubectl *--password*)", "another identity"},
	{"Bash(kubectl *--as*)", "another identity"},
	{"Bash(kubectl *--client-*)", "another identity"},
	{"Bash(kubectl *--certificate-*)", "trusts a server that the configuration does not"},
	{"Bash(kubectl *--insecure*)", "trusts a server that the configuration does not"},
	{"Bash(kubectl *--tls*)", "trusts a server that the configuration does not"},
	{"Bash(kubectl *--cache-dir*)", "writes files"},
	{"Bash(kubectl *--profile*)", "writes files"},
	{"Bash(kubectl *-file=*)", "templates from files show what is in any file"},
	{"Bash(kubectl *--raw*)", "any path of the API, secrets among them"},
	{"Bash(kubectl get *secret*)", "credentials would end up in the conversation"},
	{"Bash(kubectl get *Secret*)", "credentials would end up in the conversation"},
	{"Bash(kubectl get *SECRET*)", "credentials would end up in the conversation"},
	{`Bash(kubectl *-"*)`, "hides an option from 2.1.197, which does not undo quotes"},
	{"Bash(kubectl *-'*)", "hides an option from 2.1.197, which does not undo quotes"},
	{`Bash(kubectl *-k"*)`, "hides an option from 2.1.197, which does not undo quotes"},
	{"Bash(kubectl *-k'*)", "hides an option from 2.1.197, which does not undo quotes"},
	{`Bash(kubectl *\\\\*)`, "hides an option from 2.1.197, which does not undo quotes"},
	{"Bash(helm *--ku*)", "--kubeconfig runs programs that a file names, --kube-* leads to another cluster or identity"},
	{"Bash(helm *--post-renderer*)", "runs a program"},

	{"Bash(systemctl * -*H*)", "another host"},
	{"Bash(systemctl *--h*)", "another host"},
	{"Bash(systemctl * -*M*)", "another machine"},
	{"Bash(systemctl *--mac*)", "another machine"},
	{"Bash(systemctl *--im*)", "mounts an image"},
	{"Bash(journalctl *--v*)", "--vacuum-* deletes logs"},
	{"Bash(journalctl *--ro*)", "--rotate ends log files"},
	{"Bash(journalctl *--fl*)", "--flush moves logs"},
	{"Bash(journalctl *--syn*)", "--sync writes"},
	{"Bash(journalctl *--rel*)", "--relinquish-var moves logs"},
	{"Bash(journalctl *--sm*)", "--smart-relinquish-var moves logs"},
	{"Bash(journalctl *--cursor-*)", "--cursor-file writes a file"},
	{"Bash(journalctl *--se*)", "--setup-keys writes keys"},
	{"Bash(journalctl *--up*)", "--update-catalog writes"},
	{"Bash(journalctl *--im*)", "mounts an image"},
}

// neverAppended is denied to tiers 1 and 2: programs that run a command with words that no rule sees. The CLI
// takes "xargs curl" for "curl", so that a grant of the command covers whatever xargs adds to it. A rule about
// a program's name holds in every spelling: behind a pipe, "timeout" or "nice", and in quotes.
var neverAppended = []grant{
	{"Bash(xargs:*)", "adds words to a command that no rule sees"},
	{"Bash(*/xargs*)", "the same, by its path"},
}

// neverRepaired is denied to the tiers that may repair: what their grants reach beyond a
// repair.
var neverRepaired = []grant{
	{"Bash(systemctl *.target*)", "targets shut down, reboot or isolate the host"},
	{"Bash(systemctl *poweroff*)", "ends the host"},
	{"Bash(systemctl *reboot*)", "ends the host"},
	{"Bash(systemctl *halt*)", "ends the host"},
	{"Bash(systemctl *kexec*)", "ends the host"},
	{"Bash(systemctl *suspend*)", "ends the host"},
	{"Bash(systemctl *hibernate*)", "ends the host"},
	{"Bash(systemctl *shell*)", "debug-shell.service is a root shell"},
	{"Bash(systemctl *--j*)", "--job-mode=isolate stops everything else"},
	{`Bash(systemctl *\**)`, "a pattern stands for many units"},
	{"Bash(systemctl *?*)", "a pattern stands for many units"},
	{"Bash(systemctl *[*)", "a pattern stands for many units"},

	{"Bash(git push*--f*)", "rewrites what others rely on"},
	{"Bash(git push* -f*)", "rewrites what others rely on"},
	{"Bash(git push* -uf*)", "rewrites what others rely on"},
	{"Bash(git push*+*)", "rewrites what others rely on"},
	{"Bash(git push*--m*)", "rewrites what others rely on"},
	{"Bash(git push*--pru*)", "deletes branches"},
	{"Bash(git push*--d*)", "deletes branches"},
	{"Bash(git push* -d*)", "deletes branches"},
	{"Bash(git push* :**)", "deletes branches"},
	{"Bash(git push*--re*)", "--receive-pack runs a program"},
	{"Bash(git push*--e*)", "--exec runs a program"},
	{"Bash(git push* main)", "goes past the review"},
	{"Bash(git push* master)", "goes past the review"},
	{"Bash(git push*:*main)", "goes past the review"},
	{"Bash(git push*:*master)", "goes past the review"},
	{"Bash(git commit* -*F*)", "publishes any file as a message"},
	{"Bash(git commit*--fi*)", "publishes any file as a message"},
	{"Bash(git commit* -t*)", "publishes any file as a message"},
	{"Bash(git commit*--te*)", "publishes any file as a message"},
	{"Bash(git *--pathspec-f*)", "shows the lines of any file"},
	{"Bash(gh pr create*--body-f*)", "publishes any file"},
	{"Bash(gh pr create* -F*)", "publishes any file"},
	{"Bash(gh pr create* -dF*)", "publishes any file"},
	{"Bash(gh pr create* -fF*)", "publishes any file"},
	{"Bash(gh pr create*--template*)", "publishes any file"},
	{"Bash(gh pr create* -T*)", "publishes any file"},
	{"Bash(gh pr create*--recover*)", "reads any file"},
	{"Bash(apprise*$*)", "the shell puts in what no rule sees"},
	{"Bash(apprise*--config*)", "a configuration from elsewhere"},
	{"Bash(apprise* -c*)", "a configuration from elsewhere"},
	{"Bash(apprise*--attach*)", "sends any file"},
	{"Bash(apprise* -a*)", "sends any file"},
	{"Bash(apprise*--plugin*)", "runs a program"},
	{"Bash(apprise* -P*)", "runs a program"},
}

// neverWritten is denied to the tiers that may write files at all.
var neverWritten = slices.Concat(
	notWritten("**/.git", "leads git to a directory of the agent's own"),
	notWritten("**/.git/**", "hooks and settings there run as commands"),
	notWritten("**/.claudeops", "the directories of chains: cooldowns and handoffs"),
	notWritten("**/.claudeops/**", "what one chain is told is not for another to write"),
	notWritten("**/*compose*.y*ml", "a privileged container is as good as root; with docker compose up it would be one step"),
	notWritten("**/.env", "COMPOSE_FILE there names another file"),
)

// notWritten denies both ways to write the files that match.
func notWritten(files, why string) []grant {
	return []grant{{"Edit(" + files + ")", why}, {"Write(" + files + ")", why}}
}
