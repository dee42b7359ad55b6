"""One process of the OpenStack that tests use: service.py keystone|glance|neutron|nova|cinder FOLDER

FOLDER holds settings.json, the configuration in etc/, and whatever the service keeps. On its first start a service makes its
database (SQLite, by its models and not by the years of migrations). Once it answers, FOLDER/NAME.ready appears.

Nova's API, conductor, scheduler and compute hosts share one process with Placement: they talk by oslo.messaging's transport
in memory, so that no message broker is needed.
"""
import contextlib
import gc
import json
import os
import signal
import site
import sys

NAME, FOLDER = sys.argv[1], os.path.abspath(sys.argv[2])
with open(os.path.join(FOLDER, 'settings.json')) as settings_file:
    SETTINGS = json.load(settings_file)
site.addsitedir(SETTINGS['packages'])
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.argv = [NAME]
os.environ['EVENTLET_NO_GREENDNS'] = 'yes'

import eventlet  # noqa: E402

eventlet.monkey_patch()

import eventlet.wsgi  # noqa: E402

ETC = os.path.join(FOLDER, 'etc')


def database(name):
    """Its path, and whether it has to be made."""
    path = os.path.join(FOLDER, 'db', name + '.sqlite')
    return path, not os.path.exists(path)


def serve(port, application):
    listener = eventlet.listen(('127.0.0.1', SETTINGS['ports'][port]), backlog=512)
    eventlet.spawn(eventlet.wsgi.server, listener, application, custom_pool=eventlet.GreenPool(200),
                   log_output=False, debug=False, socket_timeout=600)


def keep_connections():
    """SQLite reads a schema of hundreds of tables anew for each connection, and SQLAlchemy makes one for each transaction.

    With a log for what is written (WAL) no reader stands in a writer's way: some read transactions end only when Python's garbage
    collector finds them, and until then each request that writes would fail.
    """
    from sqlalchemy import event, pool
    from sqlalchemy.dialects.sqlite import pysqlite
    pysqlite.SQLiteDialect_pysqlite.get_pool_class = classmethod(lambda cls, url: pool.QueuePool)
    event.listen(pool.Pool, 'connect', lambda connection, record: connection.execute('PRAGMA journal_mode = WAL'))
    # oslo.db remembers there that a transaction has begun, and begins none on a connection that came back without an end.
    event.listen(pool.Pool, 'checkin', lambda connection, record: record.info.pop('in_transaction', None))


def remember_statements():
    """SQLAlchemy knows a statement again by its parts. An operator of a name of its own (REGEXP, by which Nova looks for names) is told
    from itself, so that each list of servers is put together anew."""
    from sqlalchemy.sql import operators
    operators.custom_op.__hash__ = lambda operator: hash(operator.opstring)


def trust_connections():
    """oslo.db asks a database whether it is still there (SELECT 1) before each transaction. A file is."""
    from oslo_db.sqlalchemy import engines
    engines._connect_ping_listener = lambda connection, branch: None


def read_policies_once():
    """A service looks at each check whether the files with its policies have changed: there are none."""
    from oslo_policy import policy
    load = policy.Enforcer.load_rules

    def load_rules(self, force_reload=False):
        if force_reload or not getattr(self, 'are_loaded', False):
            load(self, force_reload)
            self.are_loaded = True
    policy.Enforcer.load_rules = load_rules


def load_by_keys():
    """What Neutron and Nova load beside each object (20 queries for a port) is asked for by keys, with queries that SQLAlchemy remembers.
    A subquery is put together anew each time, which takes more than half of Neutron's time."""
    from sqlalchemy.orm import strategies
    by_subquery = strategies.SubqueryLoader.create_row_processor

    def create_row_processor(self, context, *rest):
        if context.refresh_state:  # keys would not load everything anew
            return by_subquery(self, context, *rest)
        by_keys = self.parent_property._get_strategy((('lazy', 'selectin'),))
        return by_keys.create_row_processor(context, *rest)
    strategies.SubqueryLoader.create_row_processor = create_row_processor


def leave_out_unused():
    """Of each port Neutron also loads what belongs to features that are not served here, and so is never there: half of its time."""
    from neutron.db import models_v2
    from sqlalchemy import orm
    unused = {
        models_v2.Port: ('data_plane_status', 'device_profile', 'dns', 'numa_affinity_policy', 'port_forwardings', 'propagate_uplink_status',
                         'qos_network_policy_binding', 'qos_policy_binding', 'sub_port', 'trunk_port'),
        models_v2.Network: ('dhcp_agents', 'dns_domain', 'qos_policy_binding'),
    }
    for model, names in unused.items():
        for name in names:
            relation = orm.class_mapper(model).relationships[name]
            relation.lazy, relation.strategy_key = 'noload', (('lazy', 'noload'),)
            relation.strategy = relation._get_strategy(relation.strategy_key)


def remember_networks(application):
    """Neutron loads the network anew at several points of each change of a port, a sixth of its time. It stays as it is until a request
    changes networks or subnets: then everything is forgotten."""
    import copy
    from neutron.plugins.ml2 import plugin
    load, known = plugin.Ml2Plugin.get_network, {}

    def get_network(self, context, id, fields=None, net_db=None):
        key = id, context.is_admin, context.tenant_id, str(fields)
        if key not in known:
            known[key] = load(self, context, id, fields, net_db)
        return copy.deepcopy(known[key])
    plugin.Ml2Plugin.get_network = get_network

    def answer(environ, start_response):
        try:
            return list(application(environ, start_response))
        finally:
            if environ['REQUEST_METHOD'] != 'GET' and '/ports' not in environ['PATH_INFO']:
                known.clear()
    return answer


def remember_default_groups():
    """Neutron looks at each port, and each list of security groups, whether the project has its default group, which nobody deletes here."""
    from neutron.db import securitygroups_db
    mixin = securitygroups_db.SecurityGroupDbMixin
    ensure, known = mixin._ensure_default_security_group, {}

    def ensure_default_security_group(self, context, tenant_id):
        if known.get(tenant_id) is None:
            known[tenant_id] = ensure(self, context, tenant_id)
        return known[tenant_id]
    mixin._ensure_default_security_group = ensure_default_security_group


def in_turn(application):
    """One request at a time: where a transaction in SQLite yields, the next one would wait for its lock with the whole process, and then
    fail."""
    turn = eventlet.semaphore.Semaphore()

    def answer(environ, start_response):
        with turn:
            return list(application(environ, start_response))
    return answer


def keystone():
    os.environ['OS_KEYSTONE_CONFIG_DIR'] = ETC
    _, is_new = database('keystone')
    import keystone.conf  # noqa: F401
    if is_new:
        make_keys()
    from keystone.server import wsgi
    application = wsgi.initialize_public_application()
    if is_new:
        make_keystone_tables()
        from keystone.cmd import bootstrap
        bootstrap.backends.load_backends = lambda: None  # the application has loaded them, once and for all
        first = bootstrap.Bootstrapper()
        url = SETTINGS['authURL']
        first.admin_username = first.project_name = first.admin_role_name = 'admin'
        first.admin_password = SETTINGS['adminPassword']
        first.service_name, first.region_id = 'keystone', SETTINGS['region']
        first.public_url = first.internal_url = first.admin_url = url
        first.immutable_roles = True
        first.bootstrap()
    serve('keystone', in_turn(application))


def make_keys():
    from cryptography.fernet import Fernet
    for folder in ('fernet', 'credential'):
        os.makedirs(os.path.join(FOLDER, 'keys', folder), mode=0o700)
        for number in '01':
            with open(os.path.join(FOLDER, 'keys', folder, number), 'wb') as key:
                key.write(Fernet.generate_key())


def make_keystone_tables():
    import importlib
    import pkgutil

    import keystone
    from keystone.common import sql
    for module in pkgutil.walk_packages(keystone.__path__, 'keystone.', onerror=lambda _: None):
        parts = module.name.split('.')
        if 'tests' not in parts and 'backends' in parts and 'sql' in parts[-1]:
            importlib.import_module(module.name)
    with sql.session_for_write() as session:
        sql.ModelBase.metadata.create_all(session.get_bind())


def glance():
    os.environ['OS_GLANCE_CONFIG_DIR'] = ETC
    _, is_new = database('glance')
    if is_new:
        from glance.common import config
        from glance.db.sqlalchemy import api, models
        config.parse_args(args=[], default_config_files=[os.path.join(ETC, 'glance-api.conf')])
        models.BASE.metadata.create_all(api.get_engine())
        config.CONF.reset()
    from glance.common import wsgi_app
    serve('glance', in_turn(wsgi_app.init_app()))


def neutron():
    os.environ['OS_NEUTRON_CONFIG_DIR'], os.environ['OS_NEUTRON_CONFIG_FILES'] = ETC, 'neutron.conf'
    _, is_new = database('neutron')
    load_by_keys()
    from neutron import server
    server._init_configuration()
    remember_default_groups()
    # Agents are told of every change in threads of their own, which take the database from requests. There are no agents.
    from neutron.plugins.ml2 import ovo_rpc
    ovo_rpc.OVOServerRpcInterface = object
    # What one model adds to another is there before the first list of a service that starts again.
    from neutron.db.migration.models import head  # noqa: F401
    from sqlalchemy import orm
    orm.configure_mappers()
    leave_out_unused()
    if is_new:
        from neutron_lib.db import api, model_base
        model_base.BASEV2.metadata.create_all(api.CONTEXT_WRITER.get_engine())
    from neutron.server import api_eventlet
    serve('neutron', in_turn(remember_networks(api_eventlet.eventlet_api_server())))


def placement():
    os.environ['OS_PLACEMENT_CONFIG_DIR'] = ETC
    _, is_new = database('placement')
    from oslo_config import cfg
    from placement import conf, db_api, deploy, wsgi
    from placement.db.sqlalchemy import migration
    config = cfg.ConfigOpts()
    conf.register_opts(config)
    wsgi._parse_args(config, [''], default_config_files=[os.path.join(ETC, 'placement.conf')])
    db_api.configure(config)
    if is_new:
        migration.create_schema()
    serve('placement', in_turn(deploy.loadapp(config)))


def nova():
    cell0, is_new = database('nova_cell0')
    load_by_keys()
    import nova.monkey_patch  # noqa: F401
    import nova.conf
    import nova.virt
    from nova import config, context, objects, service
    from oslo_log import log
    from machinist_bed import hypervisors
    conf = nova.conf.CONF
    config.parse_args(['nova', '--config-file', os.path.join(ETC, 'nova.conf')])
    log.setup(conf, 'nova')
    nova.virt.bed = sys.modules['nova.virt.bed'] = hypervisors  # Nova loads drivers of its own package only
    # Asked for each server of a host whenever one of them changes, for hypervisors that arrange what they have anew.
    from nova.scheduler.client import report
    report.SchedulerReportClient.get_allocations_for_provider_tree = lambda *_: {}
    from nova.api.openstack import compute, wsgi_app  # noqa: F401
    from nova.compute import manager, rpcapi as compute_topic  # noqa: F401
    from nova.conductor import manager, rpcapi as conductor_topic  # noqa: F401, F811
    from nova.scheduler import manager, rpcapi as scheduler_topic  # noqa: F401, F811
    import os_vif
    placement()  # the hosts report what they have to it
    objects.register_all()
    os_vif.initialize()
    if is_new:
        make_nova_tables(conf, cell0)
    objects.Service.enable_min_version_cache()
    while not os.path.exists(os.path.join(FOLDER, 'identity.done')):
        eventlet.sleep(0.05)

    hosts = {}

    def start(binary, topic, host):
        conf.set_override('host', host)
        one = service.Service.create(binary=binary, topic=topic, host=host)
        one.start()
        conf.set_override('host', 'control')
        return one

    def start_host(host):
        conf.set_override('compute_driver', 'bed.' + SETTINGS['hosts'][host])
        hosts[host] = start('nova-compute', compute_topic.RPC_TOPIC, host)

    start('nova-conductor', conductor_topic.RPC_TOPIC, 'control')
    start('nova-scheduler', scheduler_topic.RPC_TOPIC, 'control')
    for host in SETTINGS['hosts']:
        start_host(host)
    if is_new:
        from nova.objects import host_mapping
        host_mapping.discover_hosts(context.get_admin_context())

    def switch(environ, start_response):
        """POST /HOST/stop and /HOST/start: a compute host dies, and comes back. POST /reclaim/SECONDS: so long a deleted server is kept."""
        host, verb = environ['PATH_INFO'].strip('/').split('/')
        if host == 'reclaim':
            conf.set_override('reclaim_instance_interval', int(verb))
        if verb == 'stop' and host in hosts:
            hosts.pop(host).stop()
        if verb == 'start' and host not in hosts:
            start_host(host)
        start_response('204 No Content', [])
        return []

    from paste import deploy
    serve('nova', deploy.loadapp('config:' + os.path.join(ETC, 'nova-api-paste.ini'), name='api'))
    serve('hosts', switch)


def make_nova_tables(conf, cell0):
    import sqlalchemy
    from nova import context, objects
    from nova.db.api import api as api_database, models as api_models
    from nova.db.main import api as main_database, models as main_models
    from oslo_utils import uuidutils
    api_models.BASE.metadata.create_all(api_database.get_engine())
    main_models.BASE.metadata.create_all(main_database.get_engine())
    with contextlib.closing(sqlalchemy.create_engine('sqlite:///' + cell0).connect()) as connection:
        main_models.BASE.metadata.create_all(connection)
    admin = context.get_admin_context()
    objects.CellMapping(admin, uuid=objects.CellMapping.CELL0_UUID, name='cell0', transport_url='none:///',
                        database_connection='sqlite:///' + cell0).create()
    objects.CellMapping(admin, uuid=uuidutils.generate_uuid(), name='cell1', transport_url='fake:///',
                        database_connection=conf.database.connection).create()


def cinder():
    """Its API, scheduler and one backend, which talk in memory as those of Nova do."""
    _, is_new = database('cinder')
    from cinder import objects
    from cinder.common import config, constants
    objects.register_all()
    from oslo_config import cfg
    from oslo_log import log
    conf = cfg.CONF
    conf([], project='cinder', default_config_files=[os.path.join(ETC, 'cinder.conf')])
    log.setup(conf, 'cinder')
    config.set_middleware_defaults()
    from cinder import coordination, rpc, service
    if is_new:
        from cinder.db import migration  # what it puts into the tables, types and quotas, is not in the models
        migration.db_sync()
    coordination.COORDINATOR.start()
    rpc.init(conf)
    service.Service.create(binary=constants.VOLUME_BINARY, host='control@disks', service_name='disks').start()
    service.Service.create(binary=constants.SCHEDULER_BINARY, host='control').start()  # asks the backend what it has
    from paste import deploy
    serve('cinder', in_turn(deploy.loadapp('config:' + os.path.join(ETC, 'cinder-api-paste.ini'), name='api')))


def end(*_):
    os._exit(0)


keep_connections()
trust_connections()
remember_statements()
read_policies_once()
{'keystone': keystone, 'glance': glance, 'neutron': neutron, 'nova': nova, 'cinder': cinder}[NAME]()
signal.signal(signal.SIGTERM, end)  # the services have handlers of their own
gc.collect()
gc.freeze()  # a million objects that stay: each collection would look at them anew
with open(os.path.join(FOLDER, NAME + '.ready'), 'w'):
    pass
while True:
    eventlet.sleep(3600)
