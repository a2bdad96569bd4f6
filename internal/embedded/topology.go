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
	// clusterName is the only cluster's name. It is kept in the database: another name would be
	// another cluster.
	clusterName = "active"
	// historyShards is kept in the database and cannot change after. One SQLite connection does one
	// thing at a time, so more shards would be no quicker.
	historyShards = 1
)

// newTemporal builds a server of all four services on db and ports. Nothing runs before its Start.
func newTemporal(db *database, ports *ports, tuning settings, logger *serverLogger) (temporal.Server, error) {
	return temporal.NewServer(
		temporal.WithConfig(serverConfig(db, ports)),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(staticHosts(ports)),
		temporal.WithDynamicConfigClient(tuning.client()),
		temporal.WithLogger(logger),
		// Whoever reaches the loopback address of this host may do everything.
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper {
			return authorization.NewNoopClaimMapper()
		}),
	)
}

// serverConfig is the static configuration: no metrics, no profiling, no HTTP API and no archive, so
// that the four gRPC listeners are all that the server opens.
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
		PublicClient:        config.PublicClient{HostPort: ports.address(frontendService)},
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

// rpcServices binds each service to its port. The address is spelt out: "local host" would be
// whatever an environment variable of the server says.
func rpcServices(ports *ports) map[string]config.Service {
	services := make(map[string]config.Service, len(temporal.DefaultServices))
	for _, name := range temporal.DefaultServices {
		services[name] = config.Service{RPC: config.RPC{BindOnIP: loopback, GRPCPort: ports.number(name)}}
	}
	return services
}

// staticHosts tells each service where the others are, instead of a membership protocol that would
// open four more listeners and take its time to settle.
func staticHosts(ports *ports) map[primitives.ServiceName]static.Hosts {
	hosts := make(map[primitives.ServiceName]static.Hosts, len(temporal.DefaultServices))
	for _, name := range temporal.DefaultServices {
		hosts[primitives.ServiceName(name)] = static.SingleLocalHost(ports.address(name))
	}
	return hosts
}
