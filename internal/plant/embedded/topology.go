package embedded

import (
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
)

const (
	// clusterName is the name of the only cluster. The database stores the name, so another name would mean another
	// cluster.
	clusterName = "active"
	// historyShards is the number of shards of the history service. The database stores the number, so it cannot be
	// changed later. More shards would not be faster, because a SQLite connection runs one statement at a time.
	historyShards = 1
)

// serviceNames returns the services to run. One of the services is an internal frontend for the other services, because
// the public frontend would require the token from these services.
func serviceNames() []string {
	return append([]string{internalFrontendService}, temporal.DefaultServices...)
}

// newTemporal builds a server with all services. The services store their data in db and listen on ports. No service
// runs before the server's Start.
func newTemporal(db *database, ports *ports, o Options, logger *serverLogger) (temporal.Server, error) {
	internode, err := internodeTLS()
	if err != nil {
		return nil, err
	}
	authorizer, mapper := authorization.NewNoopAuthorizer(), authorization.NewNoopClaimMapper()
	if o.Token != "" {
		authorizer, mapper = administratorsOnly{newAdmission(o.Admit, logger.logger)}, claimMapper{token(o.Token)}
	}
	return temporal.NewServer(
		temporal.WithConfig(serverConfig(db, ports)),
		temporal.ForServices(serviceNames()),
		temporal.WithStaticHosts(staticHosts(ports)),
		temporal.WithDynamicConfigClient(o.tuning.client()),
		temporal.WithLogger(logger),
		temporal.WithTLSConfigFactory(internode),
		temporal.WithAuthorizer(authorizer),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return mapper }),
	)
}

// serverConfig returns the static configuration. It disables metrics, profiling, the HTTP API and archival, so that the
// server opens only one gRPC listener for each service.
func serverConfig(db *database, ports *ports) *config.Config {
	return &config.Config{
		Services: rpcServices(ports),
		Persistence: config.Persistence{
			DefaultStore:     sqlite.PluginName,
			VisibilityStore:  sqlite.PluginName,
			NumHistoryShards: historyShards,
			DataStores:       map[string]config.DataStore{sqlite.PluginName: {SQL: db.sqlConfig()}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {
					Enabled:                true,
					InitialFailoverVersion: 1,
					RPCAddress:             ports.address(frontendService),
				},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: config.ArchivalDisabled},
			Visibility: config.VisibilityArchival{State: config.ArchivalDisabled},
		},
		NamespaceDefaults: config.NamespaceDefaults{
			Archival: config.ArchivalNamespaceDefaults{
				History:    config.HistoryArchivalNamespaceDefaults{State: config.ArchivalDisabled},
				Visibility: config.VisibilityArchivalNamespaceDefaults{State: config.ArchivalDisabled},
			},
		},
	}
}

// rpcServices binds each service to its port. It uses a literal address, because an environment variable can change the
// address that the server uses for "local host".
func rpcServices(ports *ports) map[string]config.Service {
	services := make(map[string]config.Service)
	for _, name := range serviceNames() {
		services[name] = config.Service{RPC: config.RPC{BindOnIP: loopback, GRPCPort: ports.number(name)}}
	}
	return services
}

// staticHosts gives each service the addresses of the other services. The addresses replace a membership protocol,
// which would open four more listeners and take time to settle.
func staticHosts(ports *ports) map[primitives.ServiceName]static.Hosts {
	hosts := make(map[primitives.ServiceName]static.Hosts)
	for _, name := range serviceNames() {
		hosts[primitives.ServiceName(name)] = static.SingleLocalHost(ports.address(name))
	}
	return hosts
}
