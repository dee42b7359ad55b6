import type { BedSettings, ServicePort } from './configuration.ts';

/** An object of the services' JSON. */
export type Json = Readonly<Record<string, unknown>>;

/** Who asks. */
export interface Account {
  readonly user: string;
  readonly password: string;
  readonly project: string;
}

/** Of Nova with tags, of Cinder with attachments. */
const VERSIONS: Readonly<Partial<Record<ServicePort, Readonly<Record<string, string>>>>> = {
  nova: { 'openstack-api-version': 'compute 2.53' },
  cinder: { 'openstack-api-version': 'volume 3.27' },
};

/** The services as a test sees them, beside the driver: each call throws unless it succeeds. */
export class Api {
  readonly #settings: BedSettings;
  readonly #token: string;
  readonly projectID: string;

  private constructor(settings: BedSettings, token: string, projectID: string) {
    this.#settings = settings;
    this.#token = token;
    this.projectID = projectID;
  }

  /** Logs in. */
  static async open(settings: BedSettings, { user, password, project }: Account): Promise<Api> {
    const domain = { id: 'default' };
    const auth = {
      identity: { methods: ['password'], password: { user: { name: user, domain, password } } },
      scope: { project: { name: project, domain } },
    };
    const answer = await fetch(`${settings.authURL}/auth/tokens`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ auth }),
    });
    if (!answer.ok) throw new Error(`logging in as ${user}: ${answer.status} ${await answer.text()}`);
    const { token } = (await answer.json()) as { token: { project: { id: string } } };
    return new Api(settings, answer.headers.get('x-subject-token') ?? '', token.project.id);
  }

  /** One request; `T` is what the caller knows of the answer. */
  async call<T = Json>(
    service: ServicePort,
    method: string,
    path: string,
    body?: Json | Uint8Array<ArrayBuffer>,
  ): Promise<T> {
    const isRaw = body instanceof Uint8Array;
    const answer = await fetch(`http://127.0.0.1:${this.#settings.ports[service]}${path}`, {
      method,
      headers: {
        'x-auth-token': this.#token,
        'content-type': isRaw ? 'application/octet-stream' : 'application/json',
        ...VERSIONS[service],
      },
      ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${service}${path}: ${answer.status} ${text.slice(0, 500)}`);
    return (text.startsWith('{') ? JSON.parse(text) : undefined) as T;
  }
}
