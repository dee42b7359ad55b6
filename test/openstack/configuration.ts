/** What a bed is made of; the services read it as settings.json. */
export interface BedSettings {
  readonly ports: Readonly<Record<ServicePort, number>>;
  readonly authURL: string;
  readonly region: string;
  readonly adminPassword: string;
  readonly servicePassword: string;
  readonly tokenSeconds: number;
  /** Compute hosts and their hypervisors (machinist_bed/hypervisors.py); each host is a zone of its name. */
  readonly hosts: Readonly<Record<string, 'Large' | 'Small' | 'Slow' | 'Broken'>>;
  /** Where Python finds the packages. */
  readonly packages: string;
}

/** Processes, and what listens beside them: Placement and the switch of the hosts are in Nova's. */
export const SERVICES = ['keystone', 'glance', 'neutron', 'nova', 'cinder'] as const;
/** One of the processes. */
export type Service = (typeof SERVICES)[number];
/** What has a port. */
export type ServicePort = Service | 'placement' | 'hosts';

type Sections = Readonly<Record<string, Readonly<Record<string, string | number | boolean>>>>;

/** The configuration files of all services, by name, for a bed in `folder`. */
export function configurationOf(settings: BedSettings, folder: string): Readonly<Record<string, string>> {
  const { ports, authURL, region } = settings;
  const database = (name: string) => ({
    connection: `sqlite:///${folder}/db/${name}.sqlite`,
    sqlite_synchronous: false,
  });
  const logs = (name: string) => ({ log_file: `${folder}/log/${name}.log`, use_stderr: false });
  const client = {
    auth_type: 'password',
    auth_url: authURL,
    username: 'services',
    password: settings.servicePassword,
    project_name: 'service',
    user_domain_id: 'default',
    project_domain_id: 'default',
    region_name: region,
  };
  const checked = {
    ...client,
    www_authenticate_uri: authURL,
    service_token_roles: 'service',
    service_token_roles_required: true,
  };
  const keystone = {
    DEFAULT: { ...logs('keystone'), public_endpoint: authURL.replace(/\/v3$/, '') },
    database: database('keystone'),
    token: { provider: 'fernet', expiration: settings.tokenSeconds },
    fernet_tokens: { key_repository: `${folder}/keys/fernet` },
    fernet_receipts: { key_repository: `${folder}/keys/fernet` },
    credential: { key_repository: `${folder}/keys/credential` },
    // A test logs in; nobody attacks these passwords.
    identity: { password_hash_rounds: 4 },
    cache: { enabled: true, backend: 'oslo_cache.dict' },
  };
  const glance = {
    DEFAULT: {
      ...logs('glance'),
      enabled_backends: 'disk:file',
      node_staging_uri: `file://${folder}/images/staging`,
      worker_self_reference_url: `http://127.0.0.1:${ports.glance}`,
      enforce_secure_rbac: false,
    },
    database: database('glance'),
    glance_store: { default_backend: 'disk' },
    disk: { filesystem_store_datadir: `${folder}/images/store` },
    os_glance_staging_store: { filesystem_store_datadir: `${folder}/images/staging` },
    os_glance_tasks_store: { filesystem_store_datadir: `${folder}/images/tasks` },
    paste_deploy: { flavor: 'keystone', config_file: `${folder}/etc/glance-api-paste.ini` },
    oslo_policy: { enforce_new_defaults: false },
    wsgi: { task_pool_threads: 2 },
    keystone_authtoken: checked,
  };
  const placement = {
    DEFAULT: logs('placement'),
    placement_database: database('placement'),
    api: { auth_strategy: 'keystone' },
    keystone_authtoken: checked,
  };
  const neutron = {
    DEFAULT: {
      ...logs('neutron'),
      state_path: `${folder}/neutron`,
      core_plugin: 'ml2',
      service_plugins: 'router',
      transport_url: 'fake:///',
      auth_strategy: 'keystone',
      api_paste_config: `${folder}/etc/neutron-api-paste.ini`,
      dhcp_agent_notification: false,
      // Nova waits for none of it: its hypervisors plug nothing.
      notify_nova_on_port_status_changes: false,
      rpc_workers: 0,
    },
    agent: { root_helper: '' },
    database: database('neutron'),
    oslo_concurrency: { lock_path: `${folder}/neutron` },
    quotas: { quota_port: 500 },
    keystone_authtoken: checked,
    nova: client,
    placement: client,
    ml2: {
      type_drivers: 'local,flat',
      tenant_network_types: 'local',
      mechanism_drivers: 'everywhere',
      extension_drivers: 'port_security',
    },
    ml2_type_flat: { flat_networks: '*' },
  };
  const nova = {
    DEFAULT: {
      ...logs('nova'),
      state_path: `${folder}/nova`,
      transport_url: 'fake:///',
      resume_guests_state_on_host_boot: true,
      my_ip: '127.0.0.1',
      metadata_listen: '127.0.0.1',
      rpc_response_timeout: 30,
      // A vCPU is a vCPU: tests fill hosts.
      cpu_allocation_ratio: 1,
      ram_allocation_ratio: 1,
      disk_allocation_ratio: 1,
      running_deleted_instance_action: 'noop',
      sync_power_state_interval: 60,
      // That each of six services is up, in one process.
      report_interval: 60,
      service_down_time: 600,
      heal_instance_info_cache_interval: 0,
      instance_usage_audit: false,
      block_device_allocate_retries_interval: 1,
      default_schedule_zone: Object.keys(settings.hosts)[0] ?? '',
    },
    api_database: database('nova_api'),
    database: database('nova_cell1'),
    oslo_concurrency: { lock_path: `${folder}/nova` },
    filter_scheduler: { track_instance_changes: false },
    quota: { instances: -1, cores: -1, ram: -1 },
    glance: { api_servers: `http://127.0.0.1:${ports.glance}` },
    neutron: client,
    placement: client,
    cinder: { catalog_info: 'volumev3::publicURL', os_region_name: region },
    service_user: { ...client, send_service_user_token: true },
    keystone: client,
    keystone_authtoken: checked,
  };
  const cinder = {
    DEFAULT: {
      ...logs('cinder'),
      state_path: `${folder}/cinder`,
      host: 'control',
      transport_url: 'fake:///',
      auth_strategy: 'keystone',
      api_rate_limit: false,
      enabled_backends: 'disks',
      storage_availability_zone: Object.keys(settings.hosts)[0] ?? '',
      glance_api_servers: `http://127.0.0.1:${ports.glance}`,
      periodic_fuzzy_delay: 0,
      // Of several services in one process only the last one reports that it is up.
      service_down_time: 1_000_000,
    },
    disks: { volume_driver: 'machinist_bed.disks.Disks', volume_backend_name: 'disks' },
    database: database('cinder'),
    coordination: { backend_url: `file://${folder}/cinder` },
    oslo_concurrency: { lock_path: `${folder}/cinder` },
    key_manager: { backend: 'cinder.keymgr.conf_key_mgr.ConfKeyManager' },
    keystone_authtoken: checked,
  };
  const checksTokens = { 'paste.filter_factory': 'keystonemiddleware.auth_token:filter_factory' };
  const files: Readonly<Record<string, Sections>> = {
    'keystone.conf': keystone,
    'glance-api.conf': glance,
    'placement.conf': placement,
    'neutron.conf': neutron,
    'nova.conf': nova,
    'cinder.conf': cinder,
    'glance-api-paste.ini': {
      'pipeline:glance-api-keystone': { pipeline: 'versionnegotiation authtoken context api' },
      'composite:api': { 'paste.composite_factory': 'glance.api:root_app_factory', '/': 'versions', '/v2': 'v2' },
      'app:versions': { 'paste.app_factory': 'glance.api.versions:create_resource' },
      'app:v2': { 'paste.app_factory': 'glance.api.v2.router:API.factory' },
      'filter:versionnegotiation': {
        'paste.filter_factory': 'glance.api.middleware.version_negotiation:VersionNegotiationFilter.factory',
      },
      'filter:context': { 'paste.filter_factory': 'glance.api.middleware.context:ContextMiddleware.factory' },
      'filter:authtoken': { ...checksTokens, delay_auth_decision: true },
    },
    'neutron-api-paste.ini': {
      'composite:neutron': { use: 'egg:Paste#urlmap', '/': 'versions', '/v2.0': 'v2' },
      'composite:v2': {
        use: 'call:neutron.auth:pipeline_factory',
        keystone: 'request_id catch_errors authtoken context extensions api',
      },
      'composite:versions': { use: 'call:neutron.auth:pipeline_factory', keystone: 'versions_api' },
      'filter:request_id': { 'paste.filter_factory': 'oslo_middleware:RequestId.factory' },
      'filter:catch_errors': { 'paste.filter_factory': 'oslo_middleware:CatchErrors.factory' },
      'filter:context': { 'paste.filter_factory': 'neutron.auth:NeutronKeystoneContext.factory' },
      'filter:authtoken': checksTokens,
      'filter:extensions': {
        'paste.filter_factory': 'neutron.api.extensions:plugin_aware_extension_middleware_factory',
      },
      'app:versions_api': { 'paste.app_factory': 'neutron.pecan_wsgi.app:versions_factory' },
      'app:api': { 'paste.app_factory': 'neutron.api.v2.router:APIRouter.factory' },
    },
    'nova-api-paste.ini': {
      'composite:api': {
        use: 'call:nova.api.openstack.urlmap:urlmap_factory',
        '/': 'versions',
        '/v2.1': 'version',
        '/v2.1/+': 'v21',
      },
      'composite:v21': {
        use: 'call:nova.api.auth:pipeline_factory_v21',
        keystone: 'request_id faultwrap sizelimit authtoken context v21_api',
      },
      'pipeline:versions': { pipeline: 'faultwrap versions_api' },
      'pipeline:version': { pipeline: 'request_id faultwrap version_api' },
      'filter:request_id': { 'paste.filter_factory': 'nova.api.compute_req_id:ComputeReqIdMiddleware.factory' },
      'filter:faultwrap': { 'paste.filter_factory': 'nova.api.openstack:FaultWrapper.factory' },
      'filter:sizelimit': { 'paste.filter_factory': 'oslo_middleware:RequestBodySizeLimiter.factory' },
      'filter:context': { 'paste.filter_factory': 'nova.api.auth:NovaKeystoneContext.factory' },
      'filter:authtoken': checksTokens,
      'app:v21_api': { 'paste.app_factory': 'nova.api.openstack.compute:APIRouterV21.factory' },
      'app:versions_api': { 'paste.app_factory': 'nova.api.openstack.compute.versions:Versions.factory' },
      'app:version_api': { 'paste.app_factory': 'nova.api.openstack.compute.versions:VersionsV2.factory' },
    },
    'cinder-api-paste.ini': {
      'composite:api': { use: 'call:cinder.api:root_app_factory', '/': 'versions', '/v3': 'v3' },
      'composite:v3': {
        use: 'call:cinder.api.middleware.auth:pipeline_factory',
        keystone: 'request_id faultwrap sizelimit authtoken context v3_api',
      },
      'pipeline:versions': { pipeline: 'request_id faultwrap versions_api' },
      'filter:request_id': { 'paste.filter_factory': 'oslo_middleware:RequestId.factory' },
      'filter:faultwrap': { 'paste.filter_factory': 'cinder.api.middleware.fault:FaultWrapper.factory' },
      'filter:sizelimit': { 'paste.filter_factory': 'oslo_middleware:RequestBodySizeLimiter.factory' },
      'filter:context': { 'paste.filter_factory': 'cinder.api.middleware.auth:CinderKeystoneContext.factory' },
      'filter:authtoken': checksTokens,
      'app:v3_api': { 'paste.app_factory': 'cinder.api.v3.router:APIRouter.factory' },
      'app:versions_api': { 'paste.app_factory': 'cinder.api.versions:Versions.factory' },
    },
  };
  return Object.fromEntries(Object.entries(files).map(([name, sections]) => [name, textOf(sections)]));
}

function textOf(sections: Sections): string {
  const lines = Object.entries(sections).flatMap(([section, options]) => [
    `[${section}]`,
    ...Object.entries(options).map(([name, value]) => `${name} = ${value}`),
  ]);
  return `${lines.join('\n')}\n`;
}
