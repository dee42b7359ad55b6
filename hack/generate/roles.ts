import { allRoleFiles } from '../../pkg/operator/preflight/permissions.ts';
import { WORLDS } from '../../pkg/worlds/served.ts';
import type { Grant, Role, RoleFile } from '../../pkg/operator/preflight/roles/role.ts';
import { formatted, PROSE } from './format.ts';
import { table } from './table.ts';

/** Of what is shipped. */
const NAMESPACE = 'machinist';
const COMMENT_WIDTH = 138;
/** In the order of the reference of RBAC, reads first. */
const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'];

/** A rule of a role: all that one role grants on the same resources. */
interface Rule {
  readonly group: string;
  readonly resources: readonly string[];
  readonly names: readonly string[];
  readonly verbs: readonly string[];
  readonly why: readonly string[];
  /** What is lost without some of the verbs. */
  readonly lost: readonly string[];
}

/** deploy/rbac, as far as pkg/operator/preflight/roles says what is in it. */
export async function roleFilesOf(): Promise<ReadonlyMap<string, string>> {
  const files = allRoleFiles(WORLDS).map(async (one): Promise<[string, string]> => {
    const text = [
      comment(`${one.comment} docs/reference/permissions.md lists the rules.`),
      comment('Generated from pkg/operator/preflight/roles and pkg/worlds/*/roles.ts by npm run generate.'),
      documentsOf(one).join('---\n'),
    ].join('');
    return [one.file, await formatted('yaml', text, { singleQuote: true, printWidth: 120 })];
  });
  return new Map(await Promise.all(files));
}

/** docs/reference/permissions.md: what each file of deploy/rbac grants, and why. */
export async function permissionsReference(): Promise<string> {
  const sections = await Promise.all(allRoleFiles(WORLDS).map(sectionOf));
  const text = `# Permissions, rule by rule

Generated from \`pkg/operator/preflight/roles\` and \`roles.ts\` of each API in \`pkg/worlds\`. What the files of \`deploy/rbac\` that concern the manager grant; [which of them a process needs](../operations/rbac.md)
depends on what it runs.

The process does not start without verbs that the last column does not name: it says which file to apply. Without the others it starts, says what is lost,
and looks again every few minutes. \`machinist preflight\` asks for the same permissions.

${sections.join('\n')}`;
  return formatted('md', text, PROSE);
}

async function sectionOf({ file, comment: what, roles }: RoleFile): Promise<string> {
  const rows = roles.flatMap((role) => rulesOf(role.grants).map((rule) => [placeOf(role), ...cellsOf(rule)]));
  const rules = await table(['where', 'resources', 'verbs', 'what for', 'lost without it'], rows);
  return `## \`${file}\`\n\n${what}\n\n${rules}`;
}

function placeOf({ place, cluster = 'control' }: Role): string {
  if (place === 'machines') return 'namespace of the Machines';
  if (place === 'leases') return 'namespace of the Leases';
  return place === 'cluster' ? `${cluster} cluster` : `namespace \`${place.namespace}\``;
}

function cellsOf({ group, resources, names, verbs, why, lost }: Rule): readonly string[] {
  const suffix = group === '' ? '' : `.${group}`;
  const all = resources.map((path) => `\`${path.replace(/(?=\/)|$/, suffix)}\``).join(', ');
  const named = names.length === 0 ? '' : ` named ${names.map((name) => `\`${name}\``).join(', ')}`;
  return [`${all}${named}`, verbs.join(', '), why.join(' '), lost.length === 0 ? '–' : lost.join('; ')];
}

function documentsOf({ namespace, roles }: RoleFile): readonly string[] {
  const created = namespace === undefined ? [] : [`apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ${namespace}\n`];
  return [...created, ...roles.flatMap((role) => [roleText(role), ...bindingTexts(role)])];
}

function namespaceOf({ place }: Role): string | undefined {
  if (place === 'cluster') return undefined;
  return typeof place === 'string' ? NAMESPACE : place.namespace;
}

function metadataOf(role: Role, namespace: string | undefined): string {
  return `metadata:\n  name: ${role.name}\n${namespace === undefined ? '' : `  namespace: ${namespace}\n`}`;
}

function roleText(role: Role): string {
  const namespace = role.isBoundElsewhere === true ? undefined : namespaceOf(role);
  return [
    role.comment === undefined ? '' : comment(role.comment),
    'apiVersion: rbac.authorization.k8s.io/v1\n',
    `kind: ${namespace === undefined ? 'ClusterRole' : 'Role'}\n`,
    metadataOf(role, namespace),
    'rules:\n',
    ...rulesOf(role.grants).map(ruleText),
  ].join('');
}

function ruleText({ group, resources, names, verbs, why }: Rule): string {
  return [
    comment(why.join(' '), '  '),
    `  - apiGroups: ${listed([group])}\n`,
    `    resources: ${listed(resources)}\n`,
    names.length === 0 ? '' : `    resourceNames: ${listed(names)}\n`,
    `    verbs: ${listed(verbs)}\n`,
  ].join('');
}

function bindingTexts(role: Role): readonly string[] {
  if (role.isBoundElsewhere === true) return [];
  const namespace = namespaceOf(role);
  const kind = namespace === undefined ? 'ClusterRole' : 'Role';
  return [
    `apiVersion: rbac.authorization.k8s.io/v1
kind: ${kind}Binding
${metadataOf(role, namespace)}roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ${kind}
  name: ${role.name}
subjects:
  - kind: ServiceAccount
    name: machinist
    namespace: ${NAMESPACE}
  - apiGroup: rbac.authorization.k8s.io
    kind: User
    name: machinist
`,
  ];
}

function listed(items: readonly string[]): string {
  return `[${items.map((item) => (item === '' || item.includes('*') ? `'${item}'` : item)).join(', ')}]`;
}

/** In lines that fit. */
function comment(text: string, indent = ''): string {
  const lines: string[] = [];
  let line = `${indent}#`;
  for (const word of text.split(' ')) {
    if (line.length + 1 + word.length > COMMENT_WIDTH) {
      lines.push(line);
      line = `${indent}#`;
    }
    line += ` ${word}`;
  }
  return [...lines, line, ''].join('\n');
}

/** What controllers that run together are granted: once for each resource; resources with equal rules in one. */
function rulesOf(grants: readonly Grant[]): readonly Rule[] {
  const single = grants.flatMap(({ group, resources, name, needed = [], optional = {}, why }) =>
    resources.map((resource) => ({
      group,
      resource,
      name,
      needed: needed.map(String),
      optional: Object.entries(optional),
      why,
    })),
  );
  const byResource = Map.groupBy(single, ({ group, resource, name }) => JSON.stringify([group, resource, name]));
  const merged = [...byResource.values()].map((some) => {
    const needed = new Set(some.flatMap((one) => one.needed));
    const optional = some
      .flatMap((one) => one.optional)
      .map(([verbs, lost]) => [verbs.split(', ').filter((verb) => !needed.has(verb)), lost] as const)
      .filter(([verbs]) => verbs.length > 0);
    const all = new Set([...needed, ...optional.flatMap(([verbs]) => verbs)]);
    const why = [...new Set(some.map((one) => one.why))];
    const verbs = VERBS.filter((verb) => all.has(verb));
    return { some, verbs, why, lost: optional.map(([few, lost]) => lostText(few, verbs, lost)) };
  });
  const alike = Map.groupBy(merged, ({ some: [first], verbs, why, lost }) =>
    JSON.stringify([first?.group, first?.name !== undefined, verbs, why, lost]),
  );
  return [...alike.values()].flatMap((rules) => {
    const [first] = rules;
    const group = first?.some[0]?.group;
    if (first === undefined || group === undefined) return [];
    const of = rules.flatMap(({ some }) => some);
    const resources = [...new Set(of.map(({ resource }) => resource))];
    const names = [...new Set(of.flatMap(({ name }) => name ?? []))];
    const { verbs, why, lost } = first;
    return [{ group, resources, names, verbs, why, lost }];
  });
}

function lostText(few: readonly string[], all: readonly string[], lost: string): string {
  return few.length === all.length ? lost : `${few.join(', ')}: ${lost}`;
}
