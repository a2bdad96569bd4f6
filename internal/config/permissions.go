package config

// grant is one permission rule of the CLI and why it is there. A rule such as
// Bash(docker ps:*) covers every command line that starts with these words, whatever
// arguments follow.
type grant struct {
	rule string
	why  string
}

// observing is what every tier may do: look.
var observing = []grant{
	{"Read(./**)", "files of the working directory, and no others"},
	{"Grep(./**)", "the same, searched"},
	{"Glob(./**)", "the same, listed"},

	{"Bash(curl:*)", "asks a service the way its users do; can also send data and write files, which the prompt forbids and a rule cannot"},
	{"Bash(ping:*)", "tells an unreachable host from an unreachable service"},
	{"Bash(dig:*)", "name resolution, a frequent cause of everything else"},
	{"Bash(ss:*)", "who listens where"},

	{"Bash(df:*)", "a full disk explains most failures to write"},
	{"Bash(free:*)", "memory pressure"},
	{"Bash(uptime:*)", "load, and whether the host has restarted"},
	{"Bash(ps:*)", "whether a process lives, and what it uses"},

	{"Bash(docker ps:*)", "which containers run, restart or have ended"},
	{"Bash(docker logs:*)", "what a container said before it failed"},
	{"Bash(docker inspect:*)", "exit codes, restart counts, health checks"},
	{"Bash(docker stats --no-stream:*)", "what each container uses; without the flag it never ends"},
	{"Bash(docker compose ps:*)", "the same per project"},
	{"Bash(docker compose logs:*)", "the same per project"},

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

// never is denied to every tier. It is a second line of defence: what is not granted is
// denied already, these rules hold back what a grant would let through in its plainest
// spelling, and a determined spelling passes them by. They are no boundary.
var never = []grant{
	{"Bash(rm -rf /:*)", "destroys the host"},
	{"Bash(docker system prune:*)", "removes what others still need"},
	{"Bash(docker volume rm:*)", "persistent data"},
	{"Bash(docker volume prune:*)", "persistent data"},
	{"Bash(docker compose down -v:*)", "takes the volumes along"},
	{"Bash(docker compose down --volumes:*)", "takes the volumes along"},
	{"Bash(kubectl delete pvc:*)", "persistent data"},
	{"Bash(kubectl delete pv:*)", "persistent data"},
	{"Bash(kubectl delete namespace:*)", "everything in it"},
	{"Bash(kubectl get secret:*)", "credentials would end up in the conversation"},
	{"Bash(kubectl get secrets:*)", "credentials would end up in the conversation"},
	{"Bash(git push --force:*)", "rewrites what others rely on"},
	{"Bash(git push -f:*)", "rewrites what others rely on"},
}

// neverWritten is denied to the tiers that may write files at all.
var neverWritten = []grant{
	{"Edit(.git/**)", "hooks there run as commands at the next commit"},
	{"Write(.git/**)", "hooks there run as commands at the next commit"},
}
