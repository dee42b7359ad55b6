import { CommandError } from '../command-error.ts';
import type { McmProvider } from './mcm-providers.ts';

/** The module of the shim, and the folder of a written driver that holds it. */
const SHIM = 'machinist.example/mcm-provider';
/** Folder of the shim in a written driver. */
export const SHIM_FOLDER = 'mcm-provider';
/** The module that defines the interface of providers. */
export const ORIGINAL = 'github.com/gardener/machine-controller-manager';
const ORIGINAL_VERSION = 'v0.62.0';
/** The oldest Go that compiles the library. */
export const OLDEST_GO = '1.26';

/** A driver to write. */
export interface McmProgram {
  readonly provider: McmProvider;
  /** Go module of the provider. */
  readonly module: string;
  /** As `go get` takes it; undefined with `source`. */
  readonly version: string | undefined;
  /** Absolute path of a checkout of the provider, used instead of its module. */
  readonly source: string | undefined;
  /** The same of machine-controller-manager. */
  readonly originalSource: string | undefined;
}

/** All files of a driver but the shim, by their names. */
export function mcmProgramFiles(program: McmProgram): ReadonlyMap<string, string> {
  return new Map([
    ['main.go', mainFile(program)],
    ['go.mod', modFile(program)],
    ['Dockerfile', dockerfile(program)],
    ['class.yaml', classFile(program)],
    ['secret.yaml', secretFile(program)],
    ['.gitignore', `${programOf(program)}\n`],
    ['.dockerignore', `${programOf(program)}\n`],
    ['README.md', readme(program)],
  ]);
}

/** File name of the program. */
export function programOf({ provider }: Pick<McmProgram, 'provider'>): string {
  return `${provider.name}-driver`;
}

function mainFile(program: McmProgram): string {
  const { provider, module } = program;
  const isSimple = provider.statements === undefined && provider.flags === undefined;
  const imports = importsOf(program).map(({ alias, path }) => `${alias === undefined ? '' : `${alias} `}"${path}"`);
  const builtin = isSimple ? ['"os"'] : ['"context"', ...(provider.flags === undefined ? [] : ['"flag"']), '"os"'];
  const own = [...(isSimple ? [] : [`"${ORIGINAL}/pkg/util/provider/driver"`]), `mcmprovider "${SHIM}"`];
  return `// A driver of Machinist: the provider ${module} of machine-controller-manager.
package main

import (
${[builtin, imports, own].map((group) => indented(group)).join('\n\n')}
)

${isSimple ? simpleMain(provider) : longMain(provider)}`;
}

function simpleMain(provider: McmProvider): string {
  const options = optionsOf(provider).map((option) => `\t\t${option},\n`);
  return `func main() {
\tos.Exit(mcmprovider.Serve(${made(provider)}, mcmprovider.Options{
${options.join('')}\t}))
}
`;
}

/** Of a provider that takes flags, or can fail to be made. */
function longMain(provider: McmProvider): string {
  const { variables = [], flags = [], statements = [] } = provider;
  const flagLines =
    flags.length === 0 ? [] : ['Flags: func(set *flag.FlagSet) {', ...flags.map((line) => `\t${line}`), '}'];
  return `func main() {
${indented([
  ...variables,
  'options := mcmprovider.Options{',
  ...[...optionsOf(provider), ...(flagLines.length === 0 ? [] : [flagLines.join('\n\t\t')])].map(
    (line) => `\t${line},`,
  ),
  '}',
  `provider := func(${statements.some((line) => line.includes('(ctx')) ? 'ctx' : '_'} context.Context) (driver.Driver, error) {`,
  ...statements.map((line) => `\t${line}`),
  `\treturn ${made(provider)}, nil`,
  '}',
  'os.Exit(mcmprovider.ServeNew(provider, options))',
])}
}
`;
}

function indented(lines: readonly string[]): string {
  return lines.map((line) => `\t${line}`).join('\n');
}

/** Of type driver.Driver. */
function made({ expression, isOlder = false }: McmProvider): string {
  return isOlder ? `mcmprovider.Complete(${expression})` : expression;
}

/** Members of mcmprovider.Options, aligned as gofmt does it. */
function optionsOf({
  name,
  provider,
  listScope,
  findsByID = false,
  completesCreations = false,
  unimplemented,
  requiredKeys = [],
}: McmProvider): readonly string[] {
  const members: readonly (readonly [string, string])[] = [
    ['Name:', `"${name}"`],
    ...(provider === undefined ? [] : [['Provider:', `"${provider}"`] as const]),
    ...(listScope === 'cluster' ? [] : [['ListScope:', 'mcmprovider.ListScopeClass'] as const]),
    ...(findsByID ? [['FindsByID:', 'true'] as const] : []),
    ...(completesCreations ? [['CompletesCreations:', 'true'] as const] : []),
    ...(unimplemented.length === 0 ? [] : [['Unimplemented:', `[]string{${listOf(unimplemented)}}`] as const]),
    ...(requiredKeys.length === 0
      ? []
      : [['SecretKeys:', `[][]string{${requiredKeys.map((keys) => `{${listOf(keys)}}`).join(', ')}}`] as const]),
  ];
  const width = Math.max(...members.map(([key]) => key.length));
  return members.map(([key, value]) => `${key.padEnd(width)} ${value}`);
}

function listOf(texts: readonly string[]): string {
  return texts.map((text) => `"${text}"`).join(', ');
}

interface Import {
  readonly alias: string | undefined;
  readonly path: string;
}

/** Throws CommandError for what is not an import of Go. */
function importsOf({ provider, module }: McmProgram): readonly Import[] {
  return provider.imports.map((text) => {
    const [, alias, given = ''] = /^(?:([A-Za-z_]\w*)=)?([\w./~-]+)$/.exec(text) ?? [];
    if (given === '')
      throw new CommandError(
        `--import ${JSON.stringify(text)}: expected PATH or ALIAS=PATH, such as cp=${module}/pkg/provider`,
      );
    return { alias, path: given.startsWith('/') ? module + given : given };
  });
}

/**
 * A package below `internal` may be imported from below the folder that holds it, by the rules of Go also from another module: that of the
 * driver is named so.
 */
function moduleOf(program: McmProgram): string {
  const internal = importsOf(program)
    .map(({ path }) => /^(.+?)\/internal(?:\/|$)/.exec(path)?.[1])
    .find((parent) => parent !== undefined);
  return internal === undefined ? programOf(program) : `${internal}/${programOf(program)}`;
}

function modFile(program: McmProgram): string {
  const { module, version = unversioned(module), source, originalSource } = program;
  const replaced = [
    [SHIM, `./${SHIM_FOLDER}`],
    ...(source === undefined ? [] : [[module, source]]),
    ...(originalSource === undefined ? [] : [[ORIGINAL, originalSource]]),
  ];
  return `module ${moduleOf(program)}

go ${OLDEST_GO}.0

require (
\t${ORIGINAL} ${ORIGINAL_VERSION}
\t${module} ${version}
\t${SHIM} v0.0.0
)

${replaced.map(([from, to]) => `replace ${from} => ${JSON.stringify(to)}`).join('\n')}
`;
}

/** A version that may stand beside a module which is replaced: its major version is in the path of the module. */
function unversioned(module: string): string {
  return `v${/\/v(\d+)$/.exec(module)?.[1] ?? '0'}.0.0`;
}

function dockerfile(program: McmProgram): string {
  const local = program.source !== undefined || program.originalSource !== undefined;
  const vendored = local
    ? '# The checkouts that go.mod names are not in the build context: run "go mod vendor" first.\n'
    : '';
  return `# A static binary without a shell, for uid 65532 and a read-only root file system.
${vendored}FROM golang:${OLDEST_GO} AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags=-s -o /driver .

FROM gcr.io/distroless/static-debian13:nonroot
COPY --from=build /driver /driver
USER 65532:65532
ENTRYPOINT ["/driver"]
`;
}

function classFile(program: McmProgram): string {
  return `# The settings are those of the provider: see kubernetes/machine-class.yaml in ${program.module}.
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineClass
metadata:
  name: ${program.provider.name}
  namespace: default
provider: ${yamlOf(program.provider.provider ?? program.provider.name)}
providerSpec: {}
secretRef:
  name: ${program.provider.name}
  namespace: default
`;
}

/** Quoted where YAML could take it for something else than a text. */
function yamlOf(text: string): string {
  return /^[A-Za-z][\w-]*$/.test(text) && !/^(true|false|yes|no|on|off|y|n|null)$/i.test(text)
    ? text
    : JSON.stringify(text);
}

function secretFile({ provider }: McmProgram): string {
  const keys = provider.secretKeys.map((key) => `  ${key}: ''\n`).join('');
  return `apiVersion: v1
kind: Secret
metadata:
  name: ${provider.name}
  namespace: default
stringData:
${keys}  userData: |
    #!/bin/sh
`;
}

function readme(program: McmProgram): string {
  const { module, version = 'a local checkout' } = program;
  const name = programOf(program);
  const provider = program.provider.provider ?? program.provider.name;
  return `# ${name}

The provider \`${module}\` (${version}) of machine-controller-manager as a driver for Machinist.

\`\`\`sh
go mod tidy
CGO_ENABLED=0 go build -o ${name} .
./${name} --address=unix:///tmp/${name}.sock --state-directory=/tmp/${name}
\`\`\`

The manager finds it with \`--driver=${provider}=unix:///tmp/${name}.sock\`. \`./${name} --help\` shows all flags.

| file                        | what it is                                                                      |
| --------------------------- | ------------------------------------------------------------------------------- |
| \`main.go\`                   | makes the provider and serves it                                                |
| \`${SHIM_FOLDER}/\`             | the library that serves it: copied from Machinist, not yours to change          |
| \`class.yaml\`, \`secret.yaml\` | a MachineClass and its Secret; the members of \`providerSpec\` are the provider's |
| \`Dockerfile\`                | a static binary, non-root, for a read-only file system                          |
`;
}
