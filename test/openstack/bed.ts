import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, closeSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { cleanUpDeadRuns, type LedgerRun, openRun } from '../../hack/control-plane/ledger.ts';
import { openStackPackages, PYTHON } from '../../hack/openstack/packages.ts';
import { eventually } from '../expect/eventually.ts';
import { Api } from './api.ts';
import { type BedSettings, configurationOf, type Service, type ServicePort, SERVICES } from './configuration.ts';
import { LossyProxy } from './lossy-proxy.ts';
import { PROJECTS, seedCloud, seedIdentity, type Seeds, USER } from './seed.ts';

const START_MS = 240_000;
/** Those that every test needs: Cinder is started by the tests of volumes. */
const AT_ONCE = SERVICES.filter((name) => name !== 'cinder');
const FOLDERS = [
  'etc',
  'db',
  'log',
  'keys',
  'neutron',
  'nova',
  'cinder',
  'images/store',
  'images/staging',
  'images/tasks',
];

const CLOUD = join(import.meta.dirname, 'cloud');
/** Python without site packages of this machine (-S) and without its environment (-I). */
const ALONE = ['-I', '-S'] as const;

/**
 * A real OpenStack of this process: Keystone, Glance, Neutron, Placement and Nova, whose compute hosts have hypervisors that boot
 * nothing. It takes 10 s and 0.7 GB, and leaves nothing behind. Zones: `nova`, `small` (10 vCPUs), `slow`, `broken`. Cinder is
 * started by those who `revive` it.
 */
export class Bed implements AsyncDisposable {
  readonly settings: BedSettings;
  readonly seeds: Seeds;
  readonly admin: Api;
  /** The user of the driver, in its project without limits. */
  readonly user: Api;
  /** What the second region is reached through. */
  readonly proxy: LossyProxy;
  readonly #place: Place;

  private constructor(place: Place, seeds: Seeds, proxy: LossyProxy, admin: Api, user: Api) {
    this.#place = place;
    this.settings = place.settings;
    this.seeds = seeds;
    this.proxy = proxy;
    this.admin = admin;
    this.user = user;
  }

  /** Resolves when everything answers and the seeds are there. */
  static async start(): Promise<Bed> {
    await using starting = new AsyncDisposableStack();
    const place = starting.use(await Place.make());
    const { settings } = place;
    const proxy = starting.use(await LossyProxy.start(settings.ports));
    const userPassword = randomBytes(12).toString('hex');
    for (const name of AT_ONCE) place.start(name);
    await place.ready('keystone');
    const projects = await seedIdentity(settings, userPassword, proxy.ports);
    writeFileSync(join(place.folder, 'identity.done'), '');
    for (const name of AT_ONCE) await place.ready(name);
    const seeds = await seedCloud(settings, { ...projects, userPassword });
    const admin = await Api.open(settings, { user: 'admin', password: settings.adminPassword, project: 'admin' });
    const user = await Api.open(settings, { user: USER, password: userPassword, project: PROJECTS.machines });
    starting.move();
    return new Bed(place, seeds, proxy, admin, user);
  }

  /** Kills a service. */
  async kill(name: Service): Promise<void> {
    await this.#place.kill(name);
  }

  /** Starts a service that does not run, with what it kept, and perhaps another configuration; resolves when it answers. */
  async revive(name: Service, change: Partial<Pick<BedSettings, 'tokenSeconds'>> = {}): Promise<void> {
    this.#place.configure({ ...this.settings, ...change });
    this.#place.start(name);
    await this.#place.ready(name);
  }

  /** A compute host dies, or comes back. */
  async switchHost(host: string, verb: 'stop' | 'start'): Promise<void> {
    await this.admin.call('hosts', 'POST', `/${host}/${verb}`);
  }

  /** How long Nova keeps a server that was deleted; 0: not at all. */
  async keepDeleted(seconds: number): Promise<void> {
    await this.admin.call('hosts', 'POST', `/reclaim/${seconds}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.proxy[Symbol.asyncDispose]();
    await this.#place[Symbol.asyncDispose]();
  }
}

/** The folder of a bed, the ports that it holds, and the processes in it. */
class Place implements AsyncDisposable {
  readonly folder: string;
  readonly settings: BedSettings;
  readonly #run: LedgerRun;
  readonly #packages: string;
  readonly #children = new Map<Service, ChildProcess>();

  private constructor(run: LedgerRun, settings: BedSettings, packages: string) {
    this.folder = run.directory;
    this.settings = settings;
    this.#packages = packages;
    this.#run = run;
  }

  static async make(): Promise<Place> {
    const packages = await openStackPackages(() => undefined);
    await cleanUpDeadRuns();
    const run = openRun(await mkdtemp(join(tmpdir(), 'openstack-')));
    const ports = await heldPorts([...SERVICES, 'placement', 'hosts'], run);
    const settings: BedSettings = {
      ports,
      authURL: `http://127.0.0.1:${ports.keystone}/v3`,
      region: 'region-1',
      adminPassword: randomBytes(12).toString('hex'),
      servicePassword: randomBytes(12).toString('hex'),
      tokenSeconds: 3_600,
      hosts: { nova: 'Large', small: 'Small', slow: 'Slow', broken: 'Broken' },
      packages: join(packages, 'root/usr/lib/python3/dist-packages'),
    };
    const folder = run.directory;
    for (const one of FOLDERS) mkdirSync(join(folder, one), { recursive: true });
    writeFileSync(join(folder, 'settings.json'), JSON.stringify(settings), { mode: 0o600 });
    const place = new Place(run, settings, packages);
    place.configure(settings);
    return place;
  }

  /** Services read it when they start. */
  configure(settings: BedSettings): void {
    for (const [name, text] of Object.entries(configurationOf(settings, this.folder)))
      writeFileSync(join(this.folder, 'etc', name), text, { mode: 0o600 });
  }

  start(name: Service): void {
    rmSync(this.#ready(name), { force: true });
    const output = openSync(this.#output(name), 'a');
    const libraries = [
      'usr/lib/x86_64-linux-gnu',
      'lib/x86_64-linux-gnu',
      'usr/lib/aarch64-linux-gnu',
      'lib/aarch64-linux-gnu',
    ];
    const args = [...ALONE, '-W', 'ignore', join(CLOUD, 'service.py'), name, this.folder];
    const child = spawn(PYTHON, args, {
      cwd: this.folder,
      stdio: ['ignore', output, output],
      env: {
        PATH: '/usr/bin:/bin',
        HOME: this.folder,
        LC_ALL: 'C.UTF-8',
        LD_LIBRARY_PATH: libraries.map((path) => join(this.#packages, 'root', path)).join(':'),
      },
    });
    closeSync(output);
    this.#children.set(name, child);
    this.#run.register(name, child.pid ?? 0);
  }

  async ready(name: Service): Promise<void> {
    const child = this.#children.get(name);
    const hasEnded = (): boolean => child === undefined || child.exitCode !== null || child.signalCode !== null;
    await eventually(() => hasEnded() || existsSync(this.#ready(name)), { timeoutMs: START_MS, describe: name });
    if (hasEnded()) throw new Error(`${name} ended:\n${readFileSync(this.#output(name), 'utf8').slice(-3_000)}`);
  }

  async kill(name: Service): Promise<void> {
    const child = this.#children.get(name);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    this.#run.unregister(child.pid ?? 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const name of SERVICES) await this.kill(name);
    (await import('node:fs')).cpSync(this.folder + '/log', '/tmp/bedlogs/' + process.pid, { recursive: true });
    await this.#run.end();
  }

  #ready(name: Service): string {
    return join(this.folder, `${name}.ready`);
  }

  #output(name: Service): string {
    return join(this.folder, 'log', `${name}.out`);
  }
}

/** A port for each, that nobody else gets until the run ends. */
async function heldPorts(names: readonly ServicePort[], run: LedgerRun): Promise<BedSettings['ports']> {
  const holder = spawn(PYTHON, [...ALONE, join(CLOUD, 'hold.py'), String(names.length)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  run.register('ports', holder.pid ?? 0);
  const { value: line } = await createInterface({ input: holder.stdout })[Symbol.asyncIterator]().next();
  if (line === undefined) throw new Error('no ports could be held');
  const ports = line.split(' ').map(Number);
  return Object.fromEntries(names.map((name, i) => [name, ports[i] ?? 0])) as BedSettings['ports'];
}
