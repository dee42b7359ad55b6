/** A list of parts in CycloneDX's form, as far as it is changed here. */
export interface Bill {
  readonly metadata: { readonly component: { readonly name: string } };
  readonly components: readonly { readonly name: string; readonly version: string; readonly 'bom-ref': string }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
}

/** The bill of `program` when it consists of those packages alone. Throws Error when the bill lacks one. */
export function reduceTo<B extends Bill>(
  packages: readonly { readonly name: string; readonly version: string }[],
  bill: B,
  program: string,
): B {
  const parts = new Set(packages.map(({ name, version }) => `${name}@${version}`));
  const components = bill.components.filter(({ name, version }) => parts.delete(`${name}@${version}`));
  if (parts.size > 0) throw new Error(`not in the bill of materials: ${[...parts].join(', ')}`);
  const left = new Set(bill.components.filter((one) => !components.includes(one)).map((one) => one['bom-ref']));
  const dependencies = bill.dependencies
    .filter(({ ref }) => !left.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn?.filter((other) => !left.has(other)) ?? [] }));
  const metadata = { ...bill.metadata, component: { ...bill.metadata.component, name: program } };
  return { ...bill, metadata, components, dependencies };
}
