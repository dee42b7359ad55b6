import type { Members } from './json.ts';
import { apiVersionOf, type Kind } from './kinds.ts';

const VERBS = ['delete', 'get', 'list', 'patch', 'create', 'update', 'watch'];
/** While the definition of a kind is being deleted. */
const LAST_VERBS = ['delete', 'get', 'list', 'watch'];
const SUBRESOURCE_VERBS = ['get', 'patch', 'update'];
/** Parts of `/apis/group/version`, the empty one before the first slash among them. */
const LONGEST = 4;
/** What the answer to `/version` says of the server. */
const VERSION = { major: '1', minor: '36', gitVersion: 'v1.36.0-simulated', platform: 'none' };

/** What `kubectl` asks for to learn which kinds there are; undefined for other paths. */
export function discovered(kinds: readonly Kind[], path: string, ending: ReadonlySet<Kind>): Members | undefined {
  if (path === '/version') return VERSION;
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
  if (path === '/apis') return groupsOf(kinds);
  // All else is asked for much more often.
  if (path.split('/', LONGEST + 1).length > LONGEST) return undefined;
  const [, groupVersion] = /^\/(?:api|apis)\/(v1|[^/]+\/[^/]+)$/.exec(path) ?? [];
  const served = kinds.filter((kind) => apiVersionOf(kind) === groupVersion);
  if (served.length > 0) {
    const resources = served.flatMap((kind) => resourcesOf(kind, ending.has(kind) ? LAST_VERBS : VERBS));
    return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources };
  }
  const group = groupsOf(kinds).groups.find(({ name }) => path === `/apis/${name}`);
  return group && { kind: 'APIGroup', apiVersion: 'v1', ...group };
}

function groupsOf(kinds: readonly Kind[]): { groups: readonly { readonly name: string }[] } & Members {
  const named = kinds.filter(({ group }) => group !== '');
  const groups = [...Map.groupBy(named, ({ group }) => group)].map(([name, ofGroup]) => {
    const versions = [...new Set(ofGroup.map(({ version }) => version))].map((version) => ({
      groupVersion: `${name}/${version}`,
      version,
    }));
    return { name, versions, preferredVersion: versions[0] };
  });
  return { kind: 'APIGroupList', apiVersion: 'v1', groups };
}

function resourcesOf(kind: Kind, verbs: readonly string[]): Members[] {
  const { plural, singular, namespaced, shortNames, categories, hasStatus, scale } = kind;
  const ofKind = { singularName: '', namespaced, kind: kind.kind };
  return [
    {
      name: plural,
      ...ofKind,
      singularName: singular,
      verbs,
      ...(shortNames.length > 0 && { shortNames }),
      ...(categories.length > 0 && { categories }),
    },
    ...(hasStatus ? [{ name: `${plural}/status`, ...ofKind, verbs: SUBRESOURCE_VERBS }] : []),
    ...(scale === undefined
      ? []
      : [
          {
            name: `${plural}/scale`,
            ...ofKind,
            group: 'autoscaling',
            version: 'v1',
            kind: 'Scale',
            verbs: SUBRESOURCE_VERBS,
          },
        ]),
    ...(plural === 'pods'
      ? [{ name: 'pods/eviction', ...ofKind, group: 'policy', version: 'v1', kind: 'Eviction', verbs: ['create'] }]
      : []),
  ];
}
