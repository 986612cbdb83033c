// Checks the documents with the recommended rules of published linters: Redocly and Spectral for OpenAPI, Spectral and the
// AsyncAPI parser for AsyncAPI. Prints each finding, warnings too; exits with 1 if there is any.
//
//     node lint.js openapi.json asyncapi.json

'use strict';

const { readFileSync } = require('node:fs');
const { Parser } = require('@asyncapi/parser');
const { BaseResolver, createConfig, lintDocument, makeDocumentFromString } = require('@redocly/openapi-core');
const { Document, Spectral } = require('@stoplight/spectral-core');
const { Json } = require('@stoplight/spectral-parsers');
const { asyncapi, oas } = require('@stoplight/spectral-rulesets');

async function redocly(file) {
  const config = await createConfig({ extends: ['recommended'] });
  const document = makeDocumentFromString(readFileSync(file, 'utf8'), file);
  const problems = await lintDocument({ document, config, externalRefResolver: new BaseResolver() });
  return problems.map(({ severity, ruleId, message, location }) => `${severity} ${ruleId}: ${location[0].pointer}: ${message}`);
}

async function spectral(file, ruleset) {
  const linter = new Spectral();
  linter.setRuleset({ extends: [[ruleset, 'recommended']] });
  const problems = await linter.run(new Document(readFileSync(file, 'utf8'), Json, file));
  return problems.map(({ severity, code, message, path }) => `${severity} ${code}: ${path.join('/')}: ${message}`);
}

async function parser(file) {
  const { diagnostics } = await new Parser().parse(readFileSync(file, 'utf8'), { source: file });
  return diagnostics.map(({ severity, code, message, path }) => `${severity} ${code}: ${path.join('/')}: ${message}`);
}

async function main([openapi, asyncapiFile]) {
  const linters = [
    ['redocly', () => redocly(openapi)],
    ['spectral, openapi', () => spectral(openapi, oas)],
    ['spectral, asyncapi', () => spectral(asyncapiFile, asyncapi)],
    ['asyncapi parser', () => parser(asyncapiFile)],
  ];
  let found = 0;
  for (const [name, lint] of linters) {
    const findings = await lint();
    found += findings.length;
    console.log(`${name}: ${findings.length} findings`);
    for (const finding of findings) console.log(`  ${finding}`);
  }
  process.exitCode = found === 0 ? 0 : 1;
}

main(process.argv.slice(2));
