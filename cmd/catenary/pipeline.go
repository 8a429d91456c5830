package main

import (
	"net/url"
	"strings"
)

// pipeline is what a CI system tells its jobs about themselves.
type pipeline struct {
	// system is the CI system's name; empty outside of one.
	system string
	// repository is owner and name, as in acme/shop.
	repository, commit, branch, ref string
	// run identifies the job's run for ever. It is the same when a step of the job is repeated, and another when the job is.
	run string
	// runner is the machine or service that builds.
	runner string
	// person is on whose behalf the job runs, author who wrote the commit.
	person, author string
}

// detectPipeline reads the environment of GitHub Actions, GitLab CI and Jenkins. What a system does not say stays empty:
// a guess would be recorded as a fact.
func detectPipeline(env func(string) string) pipeline {
	switch {
	case env("GITHUB_ACTIONS") == "true" || env("GITHUB_REPOSITORY") != "":
		return githubPipeline(env)
	case env("GITLAB_CI") == "true" || env("CI_PROJECT_PATH") != "":
		return gitlabPipeline(env)
	case env("JENKINS_URL") != "" || env("BUILD_TAG") != "":
		return jenkinsPipeline(env)
	default:
		return pipeline{}
	}
}

func githubPipeline(env func(string) string) pipeline {
	p := pipeline{
		system: "GitHub Actions", repository: env("GITHUB_REPOSITORY"), commit: env("GITHUB_SHA"), ref: env("GITHUB_REF_NAME"),
		branch: env("GITHUB_HEAD_REF"), runner: first(env("RUNNER_NAME"), "github-actions"), person: env("GITHUB_ACTOR"),
	}
	if p.branch == "" && env("GITHUB_REF_TYPE") != "tag" {
		p.branch = p.ref
	}
	if run := env("GITHUB_RUN_ID"); run != "" {
		p.run = "github/" + p.repository + "/" + run + "." + first(env("GITHUB_RUN_ATTEMPT"), "1")
	}
	return p
}

func gitlabPipeline(env func(string) string) pipeline {
	p := pipeline{
		system: "GitLab CI", repository: env("CI_PROJECT_PATH"), commit: env("CI_COMMIT_SHA"),
		branch: first(env("CI_COMMIT_BRANCH"), env("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME")),
		ref:    first(env("CI_COMMIT_REF_NAME"), env("CI_COMMIT_BRANCH"), env("CI_COMMIT_TAG")),
		runner: first(env("CI_RUNNER_DESCRIPTION"), "gitlab-ci"), person: env("GITLAB_USER_LOGIN"),
		// "Ann Example <ann@example.org>"
		author: strings.TrimSpace(before(env("CI_COMMIT_AUTHOR"), "<")),
	}
	if run := first(env("CI_JOB_ID"), env("CI_PIPELINE_ID")); run != "" {
		p.run = "gitlab/" + p.repository + "/" + run
	}
	return p
}

func jenkinsPipeline(env func(string) string) pipeline {
	branch := strings.TrimPrefix(first(env("BRANCH_NAME"), env("GIT_LOCAL_BRANCH"), env("GIT_BRANCH")), "origin/")
	p := pipeline{
		system: "Jenkins", repository: repositoryPath(first(env("GIT_URL"), env("GIT_URL_1"))), commit: env("GIT_COMMIT"),
		branch: branch, ref: branch, runner: first(env("NODE_NAME"), "jenkins"),
		person: first(env("BUILD_USER_ID"), env("CHANGE_AUTHOR")), author: env("GIT_AUTHOR_NAME"),
	}
	if tag := env("BUILD_TAG"); tag != "" {
		p.run = "jenkins/" + tag
	}
	return p
}

// repositoryPath gives owner and name of a git URL, in either of git's notations: what the other systems call the repository.
// A password in the URL is left behind with its host.
func repositoryPath(remote string) string {
	path := remote
	if u, err := url.Parse(remote); err == nil && u.Scheme != "" && u.Host != "" {
		path = u.Path
	} else if host, rest, ok := strings.Cut(remote, ":"); ok && !strings.Contains(host, "/") {
		path = rest
	}
	return strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func before(text, mark string) string {
	text, _, _ = strings.Cut(text, mark)
	return text
}
